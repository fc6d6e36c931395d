//! Table functions with named arguments, which the planner of DataFusion does not have.

use std::fmt;
use std::sync::Arc;

use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::sql::sqlparser::ast::{ObjectNamePart, TableFactor};
use flowgauge_arrow::scan::{Notify, Warning};

use crate::arguments::{Arguments, FUNCTIONS};
use crate::table::CaptureTable;

/// Plans calls of the table functions.
pub(crate) struct CapturePlanner {
    warning: Option<Notify<Warning>>,
}

impl CapturePlanner {
    pub(crate) const fn new(warning: Option<Notify<Warning>>) -> Self {
        Self { warning }
    }
}

impl fmt::Debug for CapturePlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapturePlanner").finish_non_exhaustive()
    }
}

impl RelationPlanner for CapturePlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let original = |relation| Ok(RelationPlanning::Original(Box::new(relation)));
        let TableFactor::Table { name, alias, args: Some(arguments), .. } = &relation else {
            return original(relation);
        };
        let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return original(relation) };
        let name = context.normalize_ident(name.clone());
        let Some(function) = FUNCTIONS.into_iter().find(|function| *function == name) else {
            return original(relation);
        };
        let arguments = Arguments::parse(function, arguments.args.clone())?;
        let table = CaptureTable::of(arguments, self.warning.clone());
        let plan = LogicalPlanBuilder::scan(function, provider_as_source(Arc::new(table)), None)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}
