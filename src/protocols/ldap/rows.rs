//! Rows of LDAP, and what logs of other programs have of them.

use std::borrow::Cow;

use crate::row::{Displayed, Group, List, Name};
use crate::session::kit::{Kept, KeptItem, KeptList, exchange, names};
use crate::session::{Lack, Text};

/// Tags of the operations.
pub(super) mod op {
    pub(in super::super) const BIND: u8 = 0x60;
    pub(in super::super) const BIND_RESPONSE: u8 = 0x61;
    pub(in super::super) const UNBIND: u8 = 0x42;
    pub(in super::super) const SEARCH: u8 = 0x63;
    pub(in super::super) const ENTRY: u8 = 0x64;
    pub(in super::super) const SEARCH_DONE: u8 = 0x65;
    pub(in super::super) const MODIFY: u8 = 0x66;
    pub(in super::super) const MODIFY_RESPONSE: u8 = 0x67;
    pub(in super::super) const ADD: u8 = 0x68;
    pub(in super::super) const ADD_RESPONSE: u8 = 0x69;
    pub(in super::super) const DELETE: u8 = 0x4a;
    pub(in super::super) const DELETE_RESPONSE: u8 = 0x6b;
    pub(in super::super) const RENAME: u8 = 0x6c;
    pub(in super::super) const RENAME_RESPONSE: u8 = 0x6d;
    pub(in super::super) const COMPARE: u8 = 0x6e;
    pub(in super::super) const COMPARE_RESPONSE: u8 = 0x6f;
    pub(in super::super) const ABANDON: u8 = 0x50;
    pub(in super::super) const REFERENCE: u8 = 0x73;
    pub(in super::super) const EXTENDED: u8 = 0x77;
    pub(in super::super) const EXTENDED_RESPONSE: u8 = 0x78;
    pub(in super::super) const INTERMEDIATE: u8 = 0x79;
}

names! {
    /// Operation, by the tag of its request.
    pub struct OperationKind: u8 {
        0x60 => "bind", 0x42 => "unbind", 0x63 => "search", 0x66 => "modify", 0x68 => "add", 0x4a => "delete",
        0x6c => "modify_dn", 0x6e => "compare", 0x50 => "abandon", 0x77 => "extended",
    }
}

names! {
    /// How a client authenticates in a bind (RFC 4511 section 4.2), by the tag of its credentials.
    pub struct Authentication: u8 { 0x80 => "simple", 0xa3 => "sasl" }
}

names! {
    /// Result of an operation (RFC 4511 appendix A, and the IANA registry of result codes).
    pub struct ResultCode: u32 {
        0 => "success", 1 => "operations_error", 2 => "protocol_error", 3 => "time_limit_exceeded",
        4 => "size_limit_exceeded", 5 => "compare_false", 6 => "compare_true", 7 => "auth_method_not_supported",
        8 => "stronger_auth_required", 9 => "partial_results", 10 => "referral", 11 => "admin_limit_exceeded",
        12 => "unavailable_critical_extension", 13 => "confidentiality_required", 14 => "sasl_bind_in_progress",
        16 => "no_such_attribute", 17 => "undefined_attribute_type", 18 => "inappropriate_matching",
        19 => "constraint_violation", 20 => "attribute_or_value_exists", 21 => "invalid_attribute_syntax",
        32 => "no_such_object", 33 => "alias_problem", 34 => "invalid_dn_syntax", 35 => "is_leaf",
        36 => "alias_dereferencing_problem", 48 => "inappropriate_authentication", 49 => "invalid_credentials",
        50 => "insufficient_access_rights", 51 => "busy", 52 => "unavailable", 53 => "unwilling_to_perform",
        54 => "loop_detect", 64 => "naming_violation", 65 => "object_class_violation", 66 => "not_allowed_on_nonleaf",
        67 => "not_allowed_on_rdn", 68 => "entry_already_exists", 69 => "object_class_mods_prohibited",
        71 => "affects_multiple_dsas", 80 => "other", 118 => "canceled", 119 => "no_such_operation",
        120 => "too_late", 121 => "cannot_cancel", 4096 => "sync_refresh_required",
    }
}

impl ResultCode {
    /// Returns the name in Zeek's logs.
    fn zeek_name(self) -> Cow<'static, str> {
        match self.name() {
            Some("sasl_bind_in_progress") => "SASL bind in progress".into(),
            Some(name) => name.replace('_', " ").into(),
            None => format!("unknown-{}", self.0).into(),
        }
    }
}

names! {
    /// Extent of a search (RFC 4511 section 4.5.1.2).
    pub struct Scope: u8 { 0 => "base", 1 => "single", 2 => "tree", 3 => "subordinates" }
}

names! {
    /// When aliases are followed in a search (RFC 4511 section 4.5.1.3).
    pub struct Aliases: u8 { 0 => "never", 1 => "in_searching", 2 => "finding_base", 3 => "always" }
}

/// Extended operations, by the registry of IANA.
const EXTENDED: &[(&str, &str)] = &[
    ("1.3.6.1.4.1.1466.20037", "StartTLS"),
    ("1.3.6.1.4.1.4203.1.11.1", "modify password"),
    ("1.3.6.1.4.1.4203.1.11.3", "whoami"),
    ("1.3.6.1.1.8", "cancel"),
    ("1.2.840.113556.1.4.1781", "fast bind"),
];

/// Returns a text, unless it is empty.
pub(super) fn text<const N: usize>(octets: &[u8]) -> Option<Kept<N>> {
    (!octets.is_empty()).then(|| Kept::new(octets))
}

exchange! {
    /// An operation with its result, other than a search.
    "ldap" pub struct Operation {
        /// Number by which the result is matched.
        pub identifier: u32,
        /// Operation; null if the request was not captured.
        pub operation: Option<OperationKind>,
        /// Version of a bind.
        pub version: Option<u8>,
        /// How the client authenticates in a bind.
        pub authentication: Option<Authentication>,
        /// Mechanism of a bind with SASL.
        pub mechanism: Option<Kept<20>>,
        /// Name of the entry: of the user who binds, of the entry that is changed or compared; of an extended operation its
        /// identifier.
        pub object: Option<Kept<512>>,
        /// What is changed, compared, or the new name.
        pub argument: Option<Kept<512>>,
        /// Result.
        pub result: Option<ResultCode>,
        /// Text of the server about the result.
        pub diagnostic_message: Option<Kept<512>>,
        ..
        /// The part of the name that the server knows.
        matched: Option<Kept<512>>,
        /// True if the old name of an entry is deleted when it is renamed.
        deletes_old: bool,
    }
    /// Operations of LDAP other than searches.
    zeek "ldap" ['a] as row {
        /// `identifier`.
        "message_id": u32 = row.identifier;
        /// `version`.
        "version": Option<u8> = row.version;
        /// `operation`, of a bind with its `authentication`.
        "opcode": Option<Displayed<Cow<'static, str>>> = row.opcode().map(Displayed);
        /// `result`.
        "result": Option<Displayed<Cow<'static, str>>> = row.result.map(|result| Displayed(result.zeek_name()));
        /// `diagnostic_message`, with `?` for control characters.
        "diagnostic_message": Option<Displayed<Cow<'a, str>>> = zeek_text(row.diagnostic_message.as_ref());
        /// `object`; an extended operation with its name in parentheses.
        "object": Option<Displayed<Cow<'a, str>>> = row.zeek_object().map(Displayed);
        /// `mechanism` of a bind, or `REDACTED` for its password; otherwise `argument`.
        "argument": Option<Text<'a>> = row.zeek_argument();
    }
    /// Operations of LDAP with their results. Entries are not kept.
    eve "ldap" ['a] as (row, from) if (from == row.exchange.from) {
        /// The request; null if it was not captured.
        "request": Option<Group<EveRequest<'a>>> = EveRequest::of_operation(row).map(Group);
        /// The response.
        "responses": List<Vec<Group<EveResponse<'a>>>> = List(EveResponse::of_operation(row).map(Group).into_iter().collect());
    }
}

/// Returns a text without control characters.
fn zeek_text<const N: usize>(text: Option<&Kept<N>>) -> Option<Displayed<Cow<'_, str>>> {
    let text = text?.text().to_str_lossy();
    let is_plain = !text.contains(char::is_control);
    Some(Displayed(if is_plain { text } else { text.replace(char::is_control, "?").into() }))
}

impl Operation {
    pub(super) fn new(identifier: u32, operation: OperationKind) -> Self {
        Self { identifier, operation: Some(operation), ..Self::default() }
    }

    /// Adds a request to the row, which may have a response that was captured before.
    pub(super) fn request(&mut self, request: Self) {
        let (exchange, result) = (self.exchange.clone(), self.result);
        let (diagnostic_message, matched) = (self.diagnostic_message.take(), self.matched.take());
        *self = Self { exchange, result, diagnostic_message, matched, ..request };
    }

    pub(super) fn set_matched(&mut self, matched: &[u8]) {
        self.matched = text(matched);
    }

    pub(super) const fn set_deletes_old(&mut self, deletes_old: bool) {
        self.deletes_old = deletes_old;
    }

    fn opcode(&self) -> Option<Cow<'static, str>> {
        let operation = self.operation?;
        Some(match (operation.0, self.authentication) {
            (op::BIND, Some(Authentication(0xa3))) => "bind SASL".into(),
            (op::BIND, Some(Authentication(0x80))) => "bind simple".into(),
            _ => operation.to_string().replace('_', " ").into(),
        })
    }

    fn zeek_object(&self) -> Option<Cow<'_, str>> {
        let object = self.object.as_ref()?.text().to_str_lossy();
        let is_extended = self.operation == Some(OperationKind(op::EXTENDED));
        let known = EXTENDED.iter().find(|(oid, _)| is_extended && *oid == object);
        Some(match known {
            Some((oid, name)) => format!("{oid} ({name})").into(),
            None => object,
        })
    }

    fn zeek_argument(&self) -> Option<Text<'_>> {
        if self.authentication == Some(Authentication(0x80)) {
            return Some(Text(b"REDACTED"));
        }
        self.mechanism.as_ref().map(Kept::text).or_else(|| self.argument.as_ref().map(Kept::text))
    }
}

exchange! {
    /// A search with its result.
    "ldap_search" pub struct SearchOperation {
        /// Number by which the result is matched.
        pub identifier: u32,
        /// Entry at which the search begins.
        pub base_object: Option<Kept<512>>,
        /// Extent of the search.
        pub scope: Option<Scope>,
        /// When aliases are followed.
        pub aliases: Option<Aliases>,
        /// Condition on entries (RFC 4515), at most 1024 octets.
        pub filter: Option<Kept<1024>>,
        /// Attributes that are requested, in at most 1024 octets.
        pub attributes: KeptList<1024> [sparse],
        /// Number of entries of the result.
        pub entry_count: u32,
        /// Number of references to other servers.
        pub reference_count: u32 [sparse],
        /// Result.
        pub result: Option<ResultCode>,
        /// Text of the server about the result.
        pub diagnostic_message: Option<Kept<512>>,
        ..
        /// The part of the name that the server knows.
        matched: Option<Kept<512>>,
        /// Limit of the number of entries; 0 for none.
        size_limit: u32,
        /// Limit of the time in seconds; 0 for none.
        time_limit: u32,
        /// True if only the names of attributes are requested.
        types_only: bool,
    }
    /// Searches of LDAP.
    zeek "ldap_search" ['a] as row {
        /// `identifier`.
        "message_id": u32 = row.identifier;
        /// `scope`.
        "scope": Option<Displayed<String>> = row.scope.map(|scope| Displayed(scope.to_string()));
        /// `aliases`.
        "deref_aliases": Option<Displayed<String>> =
            row.aliases.map(|aliases| Displayed(aliases.to_string().replace('_', " ")));
        /// `base_object`.
        "base_object": Option<Text<'a>> = row.base_object.as_ref().map(Kept::text);
        /// `entry_count`.
        "result_count": u32 = row.entry_count;
        /// `result`.
        "result": Option<Displayed<Cow<'static, str>>> = row.result.map(|result| Displayed(result.zeek_name()));
        /// `diagnostic_message`, with `?` for control characters.
        "diagnostic_message": Option<Displayed<Cow<'a, str>>> = zeek_text(row.diagnostic_message.as_ref());
        /// `filter`.
        "filter": Option<Text<'a>> = row.filter.as_ref().map(Kept::text);
        /// Unset, as by default in Zeek: `attributes` of the row of `ldap_search`.
        "attributes": Option<List<Vec<KeptItem<'a>>>> = None;
    }
    /// Operations of LDAP with their results. Entries are not kept.
    eve "ldap" ['a] as (row, from) if (from == row.exchange.from) {
        /// The request; null if it was not captured.
        "request": Option<Group<EveRequest<'a>>> = EveRequest::of_search(row).map(Group);
        /// The response.
        "responses": List<Vec<Group<EveResponse<'a>>>> = List(EveResponse::of_search(row).map(Group).into_iter().collect());
    }
}

impl SearchOperation {
    pub(super) fn set_matched(&mut self, matched: &[u8]) {
        self.matched = text(matched);
    }

    pub(super) const fn set_limits(&mut self, [size, time]: [u32; 2], types_only: bool) {
        (self.size_limit, self.time_limit, self.types_only) = (size, time, types_only);
    }
}

/// The names of a request and its response in events of EVE, by the operation.
fn eve_names(operation: OperationKind) -> Option<(&'static str, Option<&'static str>)> {
    Some(match operation.0 {
        op::BIND => ("bind_request", Some("bind_response")),
        op::UNBIND => ("unbind_request", None),
        op::MODIFY => ("modify_request", Some("modify_response")),
        op::ADD => ("add_request", Some("add_response")),
        op::DELETE => ("del_request", Some("del_response")),
        op::RENAME => ("mod_dn_request", Some("mod_dn_response")),
        op::COMPARE => ("compare_request", Some("compare_response")),
        op::ABANDON => ("abandon_request", None),
        op::EXTENDED => ("extended_request", Some("extended_response")),
        _ => return None,
    })
}

/// A request, as in events of EVE.
#[derive(Clone, Copy)]
struct EveRequest<'a> {
    message_id: u32,
    operation: &'static str,
    of: Asked<'a>,
}

#[derive(Clone, Copy)]
enum Asked<'a> {
    Operation(&'a Operation),
    Search(&'a SearchOperation),
}

impl<'a> EveRequest<'a> {
    fn of_operation(row: &'a Operation) -> Option<Self> {
        let (operation, _) = eve_names(row.operation?)?;
        Some(Self { message_id: row.identifier, operation, of: Asked::Operation(row) })
    }

    fn of_search(row: &'a SearchOperation) -> Option<Self> {
        let has_request = row.exchange.lacks != Some(Lack::Request);
        let of = Asked::Search(row);
        has_request.then_some(Self { message_id: row.identifier, operation: "search_request", of })
    }

    fn search(self) -> Option<Group<EveSearch<'a>>> {
        let Asked::Search(row) = self.of else { return None };
        Some(Group(EveSearch(row)))
    }

    /// Returns what an operation states, if it is this one.
    fn when(self, kind: u8) -> Option<Group<EveSubject<'a>>> {
        let Asked::Operation(row) = self.of else { return None };
        (row.operation == Some(OperationKind(kind))).then_some(Group(EveSubject(row, kind)))
    }
}

crate::table! {
    /// A request of LDAP.
    impl['a] "eve.ldap.ldap.request" for EveRequest<'a> as request {
        /// `identifier`.
        "message_id": u32 = request.message_id;
        /// Such as `bind_request`, which is the name of the object with what it states.
        "operation": Name = Name(request.operation);
        /// A search.
        "search_request": Option<Group<EveSearch<'a>>> = request.search();
        /// A bind.
        "bind_request": Option<Group<EveSubject<'a>>> = request.when(op::BIND);
        /// A change of an entry.
        "modify_request": Option<Group<EveSubject<'a>>> = request.when(op::MODIFY);
        /// A new entry.
        "add_request": Option<Group<EveSubject<'a>>> = request.when(op::ADD);
        /// An entry that is deleted.
        "del_request": Option<Group<EveSubject<'a>>> = request.when(op::DELETE);
        /// An entry that is renamed.
        "mod_dn_request": Option<Group<EveSubject<'a>>> = request.when(op::RENAME);
        /// A comparison.
        "compare_request": Option<Group<EveSubject<'a>>> = request.when(op::COMPARE);
        /// An operation of an extension.
        "extended_request": Option<Group<EveSubject<'a>>> = request.when(op::EXTENDED);
    }
}

/// A search, as in events of EVE.
#[derive(Clone, Copy)]
struct EveSearch<'a>(&'a SearchOperation);

crate::table! {
    /// A search of LDAP.
    impl['a] "eve.ldap.ldap.request.search" for EveSearch<'a> as search {
        /// `base_object`.
        "base_object": Text<'a> = search.0.base_object.as_ref().map_or(Text(b""), Kept::text);
        /// Number of `scope`.
        "scope": Option<u8> = search.0.scope.map(|scope| scope.0);
        /// Number of `aliases`.
        "deref_alias": Option<u8> = search.0.aliases.map(|aliases| aliases.0);
        /// Number of entries that the client wants at most; 0 for any.
        "size_limit": u32 = search.0.size_limit;
        /// Seconds that the search may take; 0 for any.
        "time_limit": u32 [seconds] = search.0.time_limit;
        /// True if only the names of attributes are requested.
        "types_only": bool = search.0.types_only;
        /// `attributes`.
        "attributes": KeptList<1024> = search.0.attributes.clone();
    }
}

/// What an operation states, as in events of EVE. Passwords and values are not kept.
#[derive(Clone, Copy)]
struct EveSubject<'a>(&'a Operation, u8);

impl<'a> EveSubject<'a> {
    /// Returns the object under its name in an operation.
    fn object(self, kinds: &[u8]) -> Option<Text<'a>> {
        let object = self.0.object.as_ref().map_or(Text(b""), Kept::text);
        kinds.contains(&self.1).then_some(object)
    }
}

crate::table! {
    /// What a request of LDAP states.
    impl['a] "eve.ldap.ldap.request.subject" for EveSubject<'a> as subject {
        /// `version` of a bind.
        "version": Option<u8> = subject.0.version;
        /// `object` of a bind or of an extended operation.
        "name": Option<Text<'a>> = subject.object(&[op::BIND, op::EXTENDED]);
        /// `object` of a change.
        "object": Option<Text<'a>> = subject.object(&[op::MODIFY]);
        /// `object` of a new entry, a new name or a comparison.
        "entry": Option<Text<'a>> = subject.object(&[op::ADD, op::RENAME, op::COMPARE]);
        /// `object` that is deleted.
        "dn": Option<Text<'a>> = subject.object(&[op::DELETE]);
        /// `argument` of a new name.
        "new_rdn": Option<Text<'a>> = subject.0.argument.as_ref().map(Kept::text).filter(|_| subject.1 == op::RENAME);
        /// True if the old name of an entry is deleted when it is renamed.
        "delete_old_rdn": Option<bool> = (subject.1 == op::RENAME).then_some(subject.0.deletes_old);
    }
}

/// A response, as in events of EVE.
#[derive(Clone, Copy)]
struct EveResponse<'a> {
    operation: &'static str,
    result: EveResult<'a>,
}

/// The result of an operation, as in events of EVE.
#[derive(Clone, Copy)]
struct EveResult<'a> {
    code: Option<ResultCode>,
    matched: Option<&'a Kept<512>>,
    message: Option<&'a Kept<512>>,
}

impl<'a> EveResponse<'a> {
    fn of_operation(row: &'a Operation) -> Option<Self> {
        let (_, operation) = eve_names(row.operation?)?;
        let result = EveResult {
            code: row.result,
            matched: row.matched.as_ref(),
            message: row.diagnostic_message.as_ref(),
        };
        row.result?;
        Some(Self { operation: operation?, result })
    }

    fn of_search(row: &'a SearchOperation) -> Option<Self> {
        let result = EveResult {
            code: row.result,
            matched: row.matched.as_ref(),
            message: row.diagnostic_message.as_ref(),
        };
        row.result.map(|_| Self { operation: "search_result_done", result })
    }

    fn when(self, operation: &str) -> Option<Group<EveResult<'a>>> {
        (self.operation == operation).then_some(Group(self.result))
    }
}

crate::table! {
    /// A response of LDAP.
    impl['a] "eve.ldap.ldap.responses" for EveResponse<'a> as response {
        /// Such as `bind_response`, which is the name of the object with the result.
        "operation": Name = Name(response.operation);
        /// The end of a search.
        "search_result_done": Option<Group<EveResult<'a>>> = response.when("search_result_done");
        /// The result of a bind.
        "bind_response": Option<Group<EveResult<'a>>> = response.when("bind_response");
        /// The result of a change.
        "modify_response": Option<Group<EveResult<'a>>> = response.when("modify_response");
        /// The result for a new entry.
        "add_response": Option<Group<EveResult<'a>>> = response.when("add_response");
        /// The result of a deletion.
        "del_response": Option<Group<EveResult<'a>>> = response.when("del_response");
        /// The result of a new name.
        "mod_dn_response": Option<Group<EveResult<'a>>> = response.when("mod_dn_response");
        /// The result of a comparison.
        "compare_response": Option<Group<EveResult<'a>>> = response.when("compare_response");
        /// The result of an operation of an extension.
        "extended_response": Option<Group<EveResult<'a>>> = response.when("extended_response");
    }
}

crate::table! {
    /// The result of an operation of LDAP.
    impl['a] "eve.ldap.ldap.responses.result" for EveResult<'a> as result {
        /// `result`.
        "result_code": Option<Displayed<String>> = result.code.map(|code| Displayed(code.to_string()));
        /// The part of the name that the server knows.
        "matched_dn": Text<'a> = result.matched.map_or(Text(b""), Kept::text);
        /// `diagnostic_message`.
        "message": Text<'a> = result.message.map_or(Text(b""), Kept::text);
    }
}
