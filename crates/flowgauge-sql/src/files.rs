//! Files of other formats as tables.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{DynamicFileCatalog, TableProvider, UrlTableFactory};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use crate::arguments::FUNCTIONS;

/// Makes files tables by their names, such as `FROM 'day.parquet'`, as [`SessionContext::enable_url_table`] does, but never
/// files that have the name of a table of captures: DataFusion would read a folder `flows` for each query of `flows(...)`.
/// Call it before [`register`](crate::register).
#[must_use]
pub fn with_files(context: SessionContext) -> SessionContext {
    let factory = Arc::new(Files::default());
    let catalogs = Arc::clone(context.state().catalog_list());
    let catalogs =
        Arc::new(DynamicFileCatalog::new(catalogs, Arc::clone(&factory) as Arc<dyn UrlTableFactory>));
    let session_id = context.session_id();
    let state = context.into_state_builder().with_session_id(session_id).with_catalog_list(catalogs).build();
    let context = SessionContext::from(state);
    factory.0.session_store().with_state(context.state_weak_ref());
    context
}

/// Opens files by their names.
#[derive(Debug, Default)]
struct Files(DynamicListTableFactory);

#[async_trait]
impl UrlTableFactory for Files {
    async fn try_new(&self, url: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if FUNCTIONS.contains(&url) { Ok(None) } else { self.0.try_new(url).await }
    }
}
