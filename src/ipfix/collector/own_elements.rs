//! Elements that this crate defines, in the domain of an exporter.

use super::field::Specifier;
use crate::ipfix::own_name;
use crate::record::FlowRecord;
use crate::row::{InformationElement, Table as _};

/// Elements that this crate defines, with the enterprise number that the exporter of a domain uses, as learned from its
/// type records (RFC 5610).
#[derive(Debug, Default)]
pub(super) struct OwnElements {
    elements: Vec<OwnElement>,
    /// Number of changes; templates that were compiled before the last one are compiled again.
    revision: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnElement {
    enterprise_number: u32,
    id: u16,
    /// Index of the field in the schema.
    field: usize,
}

impl OwnElements {
    /// Maximum number of changes in a domain. Each change costs another compilation of each template.
    const REVISION_MAX: u32 = 1024;

    pub(super) const fn revision(&self) -> u32 {
        self.revision
    }

    /// Records the name of an element, if it is the name of a field.
    pub(super) fn define(&mut self, enterprise_number: u32, id: u16, name: &str) {
        let first = name.as_bytes().first();
        let found = FlowRecord::COLUMNS.iter().position(|column| {
            column.name.as_bytes().first() == first
                && matches!(column.ipfix, Some(InformationElement::Own(_)))
                && own_name(column).eq(name.chars())
        });
        let Some(field) = found else { return };
        let element = OwnElement { enterprise_number, id, field };
        if self.elements.contains(&element) || self.revision >= Self::REVISION_MAX {
            return;
        }
        self.elements.retain(|known| known.field != field);
        self.elements.push(element);
        self.revision += 1;
    }

    /// Returns the index of the field that an element describes.
    pub(super) fn field(&self, specifier: Specifier) -> Option<usize> {
        let element = self.elements.iter().find(|element| {
            (element.enterprise_number, element.id) == (specifier.enterprise_number, specifier.id)
        });
        element.map(|element| element.field)
    }
}
