//! The graph of imports between the source files of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::rust_tokens::{Token, tokens};

/// Segments of a path from the root of a crate.
type ItemPath = Vec<String>;

/// What a source file declares and names outside of its tests.
#[derive(Default)]
struct File {
    /// Items that the file defines.
    defined: BTreeSet<String>,
    /// Names that the file imports, with their paths.
    bound: BTreeMap<String, ItemPath>,
    /// Modules whose items are all imported.
    globs: Vec<ItemPath>,
    /// Paths that the file names.
    named: Vec<ItemPath>,
    /// Words outside of imports, which show whether a name that is exported again is also used.
    words: BTreeSet<String>,
    /// Names that the file exports again.
    exported: BTreeSet<String>,
}

/// The modules of a crate and the imports between their files.
pub(crate) struct Imports {
    files: BTreeMap<ItemPath, File>,
}

impl Imports {
    /// Reads the source files of a crate: all files below its folder `src`.
    pub(crate) fn of_crate(source: &Path) -> Self {
        let mut paths = Vec::new();
        files_below(source, &mut paths);
        Self::of_files(paths.iter().map(|path| {
            let below = path.strip_prefix(source).expect("a path below src").to_string_lossy();
            (below.replace('\\', "/"), std::fs::read_to_string(path).expect("a readable file"))
        }))
    }

    /// Collects the imports of files with their paths below `src`.
    pub(crate) fn of_files(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut files = BTreeMap::new();
        for (path, text) in texts {
            let path = path.trim_end_matches(".rs");
            let mut module: ItemPath = path.split('/').map(str::to_owned).collect();
            if module.iter().any(|name| name == "tests" || name == "bin") {
                continue;
            }
            if module.last().is_some_and(|name| name == "mod") || path == "lib" || path == "main" {
                module.pop();
            }
            let file = File::of_text(&text, &module);
            files.insert(module, file);
        }
        Self { files }
    }

    /// Returns the number of files.
    pub(crate) fn file_count(&self) -> usize {
        self.files.len()
    }

    /// Returns the strongly connected components with more than one file: groups of files that import each other,
    /// directly or through others.
    pub(crate) fn circles(&self) -> Vec<Vec<String>> {
        let edges: BTreeMap<&ItemPath, BTreeSet<&ItemPath>> =
            self.files.iter().map(|(module, file)| (module, self.imported(module, file))).collect();
        let reachable: BTreeMap<&ItemPath, BTreeSet<&ItemPath>> =
            edges.keys().map(|module| (*module, reachable(module, &edges))).collect();
        let mut found = BTreeSet::new();
        for (module, targets) in &reachable {
            let circle: Vec<String> = targets
                .iter()
                .filter(|target| reachable.get(**target).is_some_and(|back| back.contains(*module)))
                .map(|target| target.join("::"))
                .collect();
            if circle.len() > 1 {
                found.insert(circle);
            }
        }
        found.into_iter().collect()
    }

    /// Returns the imports between the files of a circle, for its message.
    pub(crate) fn inside(&self, circle: &[String]) -> Vec<String> {
        let of = |module: &ItemPath| circle.contains(&module.join("::"));
        let files = self.files.iter().filter(|(module, _)| of(module));
        let lines = files.flat_map(|(module, file)| {
            let targets = self.imported(module, file).into_iter().filter(|target| of(target));
            targets.map(|target| format!("{} -> {}", module.join("::"), target.join("::")))
        });
        lines.collect()
    }

    fn imported(&self, module: &ItemPath, file: &File) -> BTreeSet<&ItemPath> {
        let exported_and_used = file.exported.iter().filter(|name| file.words.contains(*name));
        let used = exported_and_used.filter_map(|name| file.bound.get(name));
        let targets = file.named.iter().chain(used).filter_map(|path| self.home(path, 0));
        targets.filter(|target| *target != module).collect()
    }

    /// Returns the file that defines the item at a path; `None` for a module, and for an item of another crate.
    fn home(&self, path: &[String], depth: usize) -> Option<&ItemPath> {
        let len = (0..=path.len()).rev().find(|len| self.files.contains_key(&path[..*len]))?;
        let name = path.get(len)?;
        let (module, file) = self.files.get_key_value(&path[..len])?;
        if file.defined.contains(name) || depth > 8 {
            return Some(module);
        }
        if let Some(bound) = file.bound.get(name) {
            return self.home(&[bound, &path[len + 1..]].concat(), depth + 1);
        }
        let by_glob = file.globs.iter().find_map(|glob| {
            let (home, found) = self.files.get_key_value(glob)?;
            found.defined.contains(name).then_some(home)
        });
        // An item that no token defines is the result of a macro.
        by_glob.or(Some(module).filter(|_| len > 0))
    }
}

fn reachable<'f>(
    start: &'f ItemPath,
    edges: &BTreeMap<&'f ItemPath, BTreeSet<&'f ItemPath>>,
) -> BTreeSet<&'f ItemPath> {
    let (mut found, mut next) = (BTreeSet::new(), vec![start]);
    while let Some(module) = next.pop() {
        for target in edges.get(module).into_iter().flatten() {
            if found.insert(*target) {
                next.push(target);
            }
        }
    }
    found
}

/// Collects the source files of a folder and of those below it, in order.
pub(crate) fn files_below(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            files_below(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
    out.sort();
}

impl File {
    fn of_text(text: &str, module: &[String]) -> Self {
        let tokens = without_tests(tokens(text).into_iter().map(|(_, token)| token).collect());
        let mut file = Self::default();
        let mut position = 0;
        let mut module = module.to_vec();
        // For each open brace, whether it belongs to a module in the file.
        let mut braces = Vec::new();
        while let Some(token) = tokens.get(position) {
            match token {
                Token::Sign('{') => {
                    let keyword = position.checked_sub(2).and_then(|at| tokens.get(at));
                    let is_module = keyword == Some(&Token::Word("mod".to_owned()));
                    let name = if is_module { tokens.get(position - 1) } else { None };
                    if let Some(Token::Word(name)) = name {
                        file.defined.insert(name.clone());
                        module.push(name.clone());
                    }
                    braces.push(name.is_some());
                }
                Token::Sign('}') => {
                    let is_module = braces.pop() == Some(true);
                    module.truncate(module.len() - usize::from(is_module));
                }
                // `use<'a>` is a bound.
                Token::Word(word) if word == "use" && tokens.get(position + 1) != Some(&Token::Sign('<')) => {
                    let is_exported = position > 0
                        && (tokens[position - 1] == Token::Word("pub".to_owned())
                            || tokens[position - 1] == Token::Sign(')'));
                    position = file.import(&tokens, position + 1, &module, is_exported);
                    continue;
                }
                Token::Word(word) => {
                    let is_path = tokens.get(position + 1) == Some(&Token::Colons);
                    let is_continued = position > 0 && tokens[position - 1] == Token::Colons;
                    if is_path && !is_continued {
                        let path = path_at(&tokens, position);
                        file.named.extend(absolute(&path, &module, &file.bound));
                    }
                    if braces.is_empty() && is_item_keyword(word) {
                        file.define(&tokens, position + 1);
                    }
                    file.words.insert(word.clone());
                }
                _ => {}
            }
            position += 1;
        }
        file
    }

    /// Adds the item whose keyword precedes a position.
    fn define(&mut self, tokens: &[Token], position: usize) {
        let names = tokens[position..].iter().take(3).filter_map(|token| match token {
            Token::Word(name) => Some(name),
            _ => None,
        });
        self.defined.extend(names.filter(|name| !is_item_keyword(name)).take(1).cloned());
    }

    /// Adds the import at a position. Returns the position behind it.
    fn import(&mut self, tokens: &[Token], start: usize, module: &[String], is_exported: bool) -> usize {
        let len = tokens[start..].iter().position(|token| *token == Token::Sign(';'));
        let end = start + len.unwrap_or(0);
        let mut leaves = Vec::new();
        leaves_of(&tokens[start..end], &[], &mut leaves);
        for (path, name) in leaves {
            let Some(path) = absolute(&path, module, &self.bound) else { continue };
            if name == "*" {
                self.named.push(path.clone());
                self.globs.push(path);
                continue;
            }
            if is_exported {
                self.exported.insert(name.clone());
            } else {
                self.named.push(path.clone());
            }
            self.bound.insert(name, path);
        }
        end + 1
    }
}

fn is_item_keyword(word: &str) -> bool {
    ["struct", "enum", "trait", "fn", "const", "static", "type", "macro_rules", "union"].contains(&word)
}

/// Returns the tokens outside of modules for tests.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let is_word = |position: usize, word: &str| tokens.get(position) == Some(&Token::Word(word.to_owned()));
    let (mut out, mut position) = (Vec::new(), 0);
    while let Some(token) = tokens.get(position) {
        let is_tests = is_word(position, "mod") && is_word(position + 1, "tests");
        if is_tests && tokens.get(position + 2) == Some(&Token::Sign('{')) {
            let mut depth = 0;
            position += 2;
            while let Some(token) = tokens.get(position) {
                depth += i32::from(*token == Token::Sign('{')) - i32::from(*token == Token::Sign('}'));
                position += 1;
                if depth == 0 {
                    break;
                }
            }
            continue;
        }
        out.push(token.clone());
        position += 1;
    }
    out
}

/// Returns the words of the path at a position.
fn path_at(tokens: &[Token], mut position: usize) -> ItemPath {
    let mut path = Vec::new();
    while let Some(Token::Word(word)) = tokens.get(position) {
        path.push(word.clone());
        if tokens.get(position + 1) != Some(&Token::Colons) {
            break;
        }
        position += 2;
    }
    path
}

/// Returns the path from the root of the crate; `None` for a path into another crate. `bound` has the names that may
/// begin the path.
fn absolute(path: &[String], module: &[String], bound: &BTreeMap<String, ItemPath>) -> Option<ItemPath> {
    let first = path.first()?;
    Some(match first.as_str() {
        "crate" => path[1..].to_vec(),
        "self" => [module, &path[1..]].concat(),
        "super" => {
            let count = path.iter().take_while(|name| *name == "super").count();
            [module.get(..module.len().checked_sub(count)?)?, &path[count..]].concat()
        }
        "std" | "core" | "alloc" => return None,
        name => match bound.get(name) {
            Some(known) => [known.as_slice(), &path[1..]].concat(),
            // A module below this one, or another crate, which no file has as its path.
            None => [module, path].concat(),
        },
    })
}

/// Collects the paths of a tree of imports with the names that they bind.
fn leaves_of(tokens: &[Token], before: &[String], out: &mut Vec<(ItemPath, String)>) {
    let mut path = before.to_vec();
    let mut position = 0;
    while let Some(token) = tokens.get(position) {
        match token {
            Token::Word(word) if word == "as" => {
                if let Some(Token::Word(name)) = tokens.get(position + 1) {
                    out.push((path, name.clone()));
                }
                return;
            }
            Token::Word(word) => path.push(word.clone()),
            Token::Sign('*') => return out.push((path, "*".to_owned())),
            Token::Sign('{') => {
                let inner = &tokens[position + 1..tokens.len().saturating_sub(1)];
                return parts_of(inner).into_iter().for_each(|part| leaves_of(part, &path, out));
            }
            _ => {}
        }
        position += 1;
    }
    if path.last().is_some_and(|name| name == "self") {
        path.pop();
    }
    if let Some(name) = path.last().cloned() {
        out.push((path, name));
    }
}

/// Splits the inside of a group at its outermost commas.
fn parts_of(tokens: &[Token]) -> Vec<&[Token]> {
    let mut depth = 0;
    let parts = tokens.split(|token| {
        depth += i32::from(*token == Token::Sign('{')) - i32::from(*token == Token::Sign('}'));
        depth == 0 && *token == Token::Sign(',')
    });
    parts.filter(|part| !part.is_empty()).collect()
}
