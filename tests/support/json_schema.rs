//! A checker of JSON values for the keywords of JSON Schema (draft 2020-12) that `docs/eve.schema.json` uses. A schema with
//! another keyword is a panic.

use serde_json::{Map, Value};

/// Returns the violations of a schema by a value, each with the path in the value; none if it is valid.
pub(crate) fn violations(root: &Value, value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    if !is_valid(root, root, value) {
        Checker { root, out: &mut out }.check(root, value, "");
        assert!(!out.is_empty(), "no violation of a value that is not valid: {value}");
    }
    out
}

/// Returns whether a value is valid, without a description of the violations, which takes most of the time.
fn is_valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let schema = schema.as_object().expect("a schema is an object");
    schema.iter().all(|(keyword, argument)| match keyword.as_str() {
        "$ref" => is_valid(root, definition(root, argument), value),
        "oneOf" => {
            let schemas = argument.as_array().expect("a list");
            schemas.iter().filter(|schema| is_valid(root, schema, value)).count() == 1
        }
        "items" => value.as_array().into_iter().flatten().all(|item| is_valid(root, argument, item)),
        "properties" => {
            let schemas = argument.as_object().expect("an object");
            let mut members = value.as_object().into_iter().flatten();
            members
                .all(|(name, member)| schemas.get(name).is_none_or(|schema| is_valid(root, schema, member)))
        }
        _ => satisfies(schema, keyword, argument, value),
    })
}

/// Returns the schema to which a `$ref` refers.
fn definition<'a>(root: &'a Value, reference: &Value) -> &'a Value {
    let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
    pointer.and_then(|pointer| root.pointer(pointer)).expect("a definition")
}

/// Returns whether a value satisfies a keyword that applies no other schema.
fn satisfies(schema: &Map<String, Value>, keyword: &str, argument: &Value, value: &Value) -> bool {
    match keyword {
        "$schema" | "$defs" | "title" | "description" => true,
        "type" => is_of_type(argument.as_str().expect("a name of a type"), value),
        "const" => value == argument,
        "enum" => argument.as_array().expect("a list").contains(value),
        "minimum" => value.as_u64() >= argument.as_u64(),
        "maximum" => value.as_u64() <= argument.as_u64(),
        "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= number(argument)),
        "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= number(argument)),
        "pattern" => {
            let pattern = argument.as_str().expect("a pattern");
            value.as_str().is_none_or(|text| is_match(pattern, text))
        }
        "required" => argument
            .as_array()
            .expect("a list")
            .iter()
            .all(|name| value.get(name.as_str().expect("a name")).is_some()),
        "additionalProperties" => {
            assert_eq!(argument, &Value::Bool(false));
            let known = schema.get("properties").and_then(Value::as_object).expect("properties");
            value.as_object().is_none_or(|members| members.keys().all(|name| known.contains_key(name)))
        }
        other => panic!("unknown keyword {other}"),
    }
}

struct Checker<'a> {
    root: &'a Value,
    out: &'a mut Vec<String>,
}

impl Checker<'_> {
    fn check(&mut self, schema: &Value, value: &Value, path: &str) {
        let schema = schema.as_object().expect("a schema is an object");
        for (keyword, argument) in schema {
            let is_valid = match keyword.as_str() {
                "$ref" => {
                    self.check(definition(self.root, argument), value, path);
                    true
                }
                "oneOf" => self.check_one(argument, value, path),
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(argument, item, &format!("{path}/{index}"));
                    }
                    true
                }
                "properties" => {
                    self.check_members(argument.as_object().expect("an object"), value, path);
                    true
                }
                _ => satisfies(schema, keyword, argument, value),
            };
            if !is_valid {
                self.out.push(format!("{path}: {keyword} {argument}, but the value is {value}"));
            }
        }
    }

    fn check_members(&mut self, schemas: &Map<String, Value>, value: &Value, path: &str) {
        for (name, member) in value.as_object().into_iter().flatten() {
            if let Some(schema) = schemas.get(name) {
                self.check(schema, member, &format!("{path}/{name}"));
            }
        }
    }

    /// Checks that exactly one schema applies. If none does, adds the violations of the one with the fewest.
    fn check_one(&mut self, schemas: &Value, value: &Value, path: &str) -> bool {
        let mut all: Vec<Vec<String>> = Vec::new();
        for schema in schemas.as_array().expect("a list") {
            let mut out = Vec::new();
            Checker { root: self.root, out: &mut out }.check(schema, value, path);
            all.push(out);
        }
        let valid_count = all.iter().filter(|found| found.is_empty()).count();
        if valid_count == 0 {
            self.out.extend(all.into_iter().min_by_key(Vec::len).unwrap_or_default());
        }
        valid_count == 1
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        other => panic!("unknown type {other}"),
    }
}

/// Returns whether a text is that of an anchored pattern of letters, dots, classes in brackets, and repetitions of them: `+`,
/// `*` and `{count}`.
fn is_match(pattern: &str, text: &str) -> bool {
    let inner =
        pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')).expect("an anchored pattern");
    let text: Vec<char> = text.chars().collect();
    matches(inner, &text)
}

fn matches(pattern: &str, text: &[char]) -> bool {
    let Some(first) = pattern.chars().next() else { return text.is_empty() };
    let (class, rest) = match pattern.strip_prefix('[') {
        Some(inner) => inner.split_once(']').expect("the end of a class"),
        None => pattern.split_at(first.len_utf8()),
    };
    let is_class = first == '[';
    let is_in =
        |letter: char| if is_class { is_in_class(class, letter) } else { first == '.' || first == letter };
    let count = text.iter().take_while(|letter| is_in(**letter)).count();
    let (range, rest) = match rest.chars().next() {
        Some('+') => (1..=count, &rest[1..]),
        Some('*') => (0..=count, &rest[1..]),
        Some('{') => {
            let (number, rest) = rest[1..].split_once('}').expect("the end of a count");
            let number = number.parse().expect("a count");
            (number..=number, rest)
        }
        _ => (1..=1, rest),
    };
    range.rev().any(|len| len <= count && matches(rest, &text[len..]))
}

fn is_in_class(class: &str, letter: char) -> bool {
    let letters: Vec<char> = class.chars().collect();
    let mut rest = &letters[..];
    loop {
        rest = match rest {
            [start, '-', end, others @ ..] => {
                if (*start..=*end).contains(&letter) {
                    return true;
                }
                others
            }
            [one, others @ ..] => {
                if *one == letter {
                    return true;
                }
                others
            }
            [] => return false,
        };
    }
}

#[test]
fn violations_of_each_keyword_are_found() {
    let schema: Value = serde_json::from_str(
        r##"{
            "oneOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/b" }],
            "$defs": {
                "a": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["kind", "list"],
                    "properties": {
                        "kind": { "const": "a" },
                        "list": { "type": "array", "minItems": 1, "maxItems": 2, "items": { "type": "integer", "minimum": 1, "maximum": 9 } },
                        "text": { "type": "string", "pattern": "^[a-c_]{2}x+.*$" },
                        "one": { "enum": ["x", 1] },
                        "flag": { "type": "boolean" }
                    }
                },
                "b": { "type": "object", "additionalProperties": false, "required": ["kind"], "properties": { "kind": { "const": "b" } } }
            }
        }"##,
    )
    .expect("JSON");
    let count = |text: &str| violations(&schema, &serde_json::from_str(text).expect("JSON")).len();
    assert_eq!(count(r#"{"kind":"a","list":[1],"text":"a_xxyz","one":1,"flag":true}"#), 0);
    assert_eq!(count(r#"{"kind":"b"}"#), 0);
    for wrong in [
        r#"{"kind":"a"}"#,
        r#"{"kind":"c"}"#,
        r#"{"kind":"b","list":[1]}"#,
        r#"{"kind":"a","list":[]}"#,
        r#"{"kind":"a","list":[1,2,3]}"#,
        r#"{"kind":"a","list":[0]}"#,
        r#"{"kind":"a","list":[10]}"#,
        r#"{"kind":"a","list":["1"]}"#,
        r#"{"kind":"a","list":[1],"text":"adx"}"#,
        r#"{"kind":"a","list":[1],"text":"ab"}"#,
        r#"{"kind":"a","list":[1],"one":"y"}"#,
        r#"{"kind":"a","list":[1],"flag":1}"#,
        r#"{"kind":"a","list":[1],"other":1}"#,
        "[]",
    ] {
        assert!(count(wrong) > 0, "{wrong}");
    }
}
