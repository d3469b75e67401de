//! Languages of the user's own: a directory of files, found by a flag, the environment or its usual place.

use serde_json::Value;

use crate::harness::*;

const PERL: &str = r#"
name = "perl"
aliases = ["pl5"]
extensions = ["pl", "pm"]
entries = ["main.pl"]
package = "perl"

[tools.perl]
version = ["-e", "print $^V"]

[env]
FOR_TOOLS = "not for the program"

[[way]]
tools = ["perl"]
run.argv = ["{perl}", "{entry}", "{args}"]
run.env = { SIZE = "{memory}", WORD = "of the file" }
parse.argv = ["/bin/sh", "-c", "{perl} -c $0 || exit 65", "{entry}"]
"#;

const SOURCE: &str = "print \"perl @ARGV $ENV{FOR_TOOLS}$ENV{WORD} $ENV{SIZE}\\n\";";

fn known(place: &Place, run: impl Fn(Hotcell) -> Hotcell) -> Vec<Value> {
    let ran = run(place.hotcell(["languages", "--output", "json"])).go();
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let all: Value = serde_json::from_slice(&ran.stdout).expect("languages are told as JSON");
    all["languages"].as_array().expect("a list").clone()
}

#[track_caller]
fn named<'a>(all: &'a [Value], name: &str) -> &'a Value {
    let mut found = all.iter().filter(|language| language["name"] == name);
    let first = found.next().unwrap_or_else(|| panic!("{name} is not there: {all:?}"));
    assert!(found.next().is_none(), "{name} is there twice");
    first
}

#[test]
fn the_languages_of_this_host_are_told() {
    let place = Place::new();
    let all = known(&place, |run| run);
    for name in ["python", "javascript", "go", "rust", "java", "bash", "c", "cpp"] {
        let language = named(&all, name);
        assert_eq!(language["available"], true, "{language}");
        assert!(language["version"].as_str().is_some_and(|v| v.bytes().any(|b| b.is_ascii_digit())), "{language}");
        assert!(language["toolchain"].as_str().is_some_and(|path| path.starts_with('/')), "{language}");
        assert_eq!(language["compiled"], !["python", "javascript", "bash"].contains(&name), "{language}");
    }
    let text = place.hotcell(["languages"]).go();
    assert_eq!((text.code, text.stderr.as_str()), (0, ""));
    assert_eq!(text.out().lines().count(), all.len());
    assert!(!text.out().contains('\x1b'), "colour where there is no terminal");
    assert_eq!(place.files(&[]), Vec::<String>::new(), "something was left");
}

#[test]
fn a_language_of_ones_own_by_the_flag() {
    let place = Place::new();
    place.write("mine/perl.toml", PERL);
    let file = place.write("work/a.pl", SOURCE);
    let words = [file.as_os_str(), "--languages".as_ref(), place.path("mine").as_os_str()].map(ToOwned::to_owned);
    place.run(&words).args(&["x", "y"]).go().says("perl x y of the file 1073741824\n");
    let text = place.text(&words).go();
    assert_eq!((text.code, text.out().as_str()), (0, "perl  of the file 1073741824\n"));
    let bad = place.write("work/bad.pl", "if (");
    let ran = place.run([bad.as_os_str(), "--languages".as_ref(), place.path("mine").as_os_str()]).go();
    assert!(ran.fails("SyntaxError", 255).err().contains("syntax error"));
    // Without it, nobody knows what that is.
    place.run([&file]).go().refused(&["a.pl", "--lang"]);
}

#[test]
fn a_language_of_ones_own_by_the_environment_and_in_its_usual_place() {
    let place = Place::new();
    let file = place.write("work/a.pl", SOURCE);
    let said = "perl  of the file 1073741824\n";
    place.write("mine/perl.toml", PERL);
    place.write("mine/README.md", "not a language");
    place.run([&file]).env("HOTCELL_LANGUAGES", place.path("mine")).go().says(said);
    place.run(["--lang", "pl5", "--code", SOURCE]).env("HOTCELL_LANGUAGES", place.path("mine")).go().says(said);
    place.write("config/hotcell/languages/perl.toml", PERL);
    place.run([&file]).env("XDG_CONFIG_HOME", place.path("config")).go().says(said);
    place.write("home/.config/hotcell/languages/perl.toml", PERL);
    place.run([&file]).go().says(said);
    // The flag before the environment before the usual place.
    place.write("other/perl.toml", PERL.replace("of the file", "of the environment"));
    let ran = place.run([&file]).env("HOTCELL_LANGUAGES", place.path("other")).go();
    ran.says("perl  of the environment 1073741824\n");
    let words = [file.as_os_str(), "--languages".as_ref(), place.path("mine").as_os_str()].map(ToOwned::to_owned);
    place.run(words).env("HOTCELL_LANGUAGES", place.path("other")).go().says(said);
}

#[test]
fn a_language_of_ones_own_is_told_with_the_others() {
    let place = Place::new();
    place.write("mine/perl.toml", PERL);
    let all = known(&place, |run| run.env("HOTCELL_LANGUAGES", place.path("mine")));
    let perl = named(&all, "perl");
    assert_eq!(perl["available"], true, "{perl}");
    assert!(perl["version"].as_str().is_some_and(|version| version.starts_with("v5")), "{perl}");
    assert_eq!((&perl["compiled"], &perl["extensions"][1]), (&false.into(), &"pm".into()));
    named(&all, "python");
}

#[test]
fn a_file_of_ones_own_overrides_what_is_built_in() {
    let place = Place::new();
    place.write(
        "mine/bash.toml",
        "name = \"bash\"\nextensions = [\"sh\"]\npackage = \"dash\"\n[tools.sh]\n[[way]]\ntools = [\"sh\"]\n\
         run.argv = [\"{sh}\", \"-c\", 'echo mine; . \"$0\"', \"{entry}\"]\n",
    );
    let file = place.write("work/a.sh", "echo theirs");
    place.run([&file]).go().says("theirs\n");
    place.run([&file]).env("HOTCELL_LANGUAGES", place.path("mine")).go().says("mine\ntheirs\n");
    let all = known(&place, |run| run.env("HOTCELL_LANGUAGES", place.path("mine")));
    assert!(!named(&all, "bash")["toolchain"].as_str().is_some_and(|path| path.ends_with("bash")));
    // An extension that another language has is the user's own first.
    place.write("mine/bash.toml", PERL.replace("\"pl\", \"pm\"", "\"py\"").replace("print", "say"));
    let file = place.write("work/a.py", SOURCE);
    place.run([&file]).env("HOTCELL_LANGUAGES", place.path("mine")).go().says("perl  of the file 1073741824\n");
    place.run(["--lang", "python", "--code", "print(1)"]).env("HOTCELL_LANGUAGES", place.path("mine")).go().says("1\n");
}

#[test]
fn a_compiled_language_of_ones_own() {
    let place = Place::new();
    place.write(
        "mine/upper.toml",
        "name = \"upper\"\nextensions = [\"up\"]\npackage = \"sed\"\n[tools.sed]\n[tools.awk]\n[[way]]\n\
         tools = [\"sed\", \"awk\"]\ncompile.argv = [\"{sed}\", \"-n\", \"s/x/y/w /work/out\", \"{sources}\"]\n\
         run.argv = [\"{awk}\", \"{print toupper($0)}\", \"/build/out\"]\n",
    );
    let file = place.write("work/a.up", "an x\nnone\nanother x\n");
    let run = || place.run([&file]).env("HOTCELL_LANGUAGES", place.path("mine")).go();
    assert!(!run().says("AN Y\nANOTHER Y\n").cached());
    assert!(run().says("AN Y\nANOTHER Y\n").cached());
}

#[track_caller]
fn wrong(text: &str, parts: &[&str]) {
    let place = Place::new();
    let path = place.write("mine/wrong.toml", text);
    let file = place.write("work/a.pl", SOURCE);
    let name = path.display().to_string();
    let mut all = vec![name.as_str()];
    all.extend(parts);
    place.run([&file]).env("HOTCELL_LANGUAGES", place.path("mine")).go().refused(&all);
    // Whatever the language that is asked for: nobody knows what the file would have said.
    place.text(["--code", "print(1)"]).env("HOTCELL_LANGUAGES", place.path("mine")).go().refused(&all);
    place.hotcell(["languages"]).env("HOTCELL_LANGUAGES", place.path("mine")).go().refused(&all);
    assert_eq!(place.files(&[]), ["mine/wrong.toml", "work/a.pl"]);
}

#[test]
fn a_file_that_is_not_toml_is_refused() {
    wrong("this is not toml", &["line 1"]);
    wrong("name = \"perl", &["line 1"]);
    wrong("\n\nname = [\n", &["line"]);
    wrong("name = \"a\"\nname = \"b\"\n", &["line", "duplicate key"]);
    wrong("name = 'ü'\n= \n", &["line"]);
    wrong("", &["line", "name"]);
}

/// Lines are counted as editors do.
#[test]
fn a_wrong_line_is_named_by_its_number() {
    wrong("name = \"a\"\nname = \"b\"\n", &["line 2:"]);
    wrong(&PERL.replace("aliases", "alias"), &["line 3:", "`alias`"]);
    wrong(&PERL.replace("extensions = [\"pl\", \"pm\"]", "extensions = \"pl\""), &["line 4:"]);
}

#[test]
fn a_file_that_is_not_utf8_is_refused() {
    let place = Place::new();
    place.write("mine/wrong.toml", b"name = \"\xff\"".as_slice());
    place.hotcell(["languages"]).env("HOTCELL_LANGUAGES", place.path("mine")).go().refused(&["wrong.toml", "UTF-8"]);
}

#[test]
fn an_unknown_field_is_refused() {
    wrong(&PERL.replace("aliases", "alias"), &["`alias`"]);
    wrong(&PERL.replace("version =", "versions ="), &["versions"]);
    wrong(&PERL.replace("run.env", "run.environment"), &["environment"]);
    wrong(&PERL.replace("extensions = [\"pl\", \"pm\"]", "extensions = \"pl\""), &["line"]);
    wrong(&PERL.replace("package = \"perl\"", ""), &["package"]);
}

#[test]
fn an_unknown_tool_is_refused() {
    wrong(&PERL.replace("tools = [\"perl\"]", "tools = [\"perl6\"]"), &["`perl6`", "[tools.perl6]"]);
}

#[test]
fn a_way_that_does_nothing_is_refused() {
    wrong(&PERL.replace("run.argv = [\"{perl}\", \"{entry}\", \"{args}\"]", "run.argv = []"), &["run.argv"]);
    let without = PERL.split("[[way]]").next().expect("it has a beginning");
    wrong(without, &["way"]);
    wrong(&PERL.replace("name = \"perl\"", "name = \"\""), &["name"]);
}

#[test]
fn a_bad_pattern_is_refused() {
    wrong(&format!("{PERL}\n[[names]]\npattern = '(unclosed'\nname = \"x.pl\"\n"), &["`(unclosed`"]);
}

#[test]
fn an_unknown_word_is_refused() {
    for (place_of, word) in [("{entry}\", \"{args}", "{entri}"), ("of the file", "{unknown}"), ("{memory}", "{memroy}")]
    {
        let place = Place::new();
        place.write("mine/perl.toml", PERL.replacen(place_of, word, 1));
        let file = place.write("work/a.pl", SOURCE);
        let ran = place.run([&file]).env("HOTCELL_LANGUAGES", place.path("mine")).go();
        ran.refused(&["perl", word, "stands for nothing"]);
    }
}

#[test]
fn a_directory_that_is_not_there_is_refused() {
    let place = Place::new();
    let file = place.write("work/a.py", "print(1)");
    let ran = place.run([file.as_os_str(), "--languages".as_ref(), "nowhere".as_ref()]).go();
    ran.refused(&["nowhere", "No such file"]);
    let ran = place.run([file.as_os_str(), "--languages".as_ref(), file.as_os_str()]).go();
    ran.refused(&["a.py"]);
    place.run([&file]).env("HOTCELL_LANGUAGES", place.path("nowhere")).go().refused(&["nowhere"]);
}

/// A variable that is empty says as much as one that is not there.
#[test]
fn an_empty_variable_names_no_directory() {
    let place = Place::new();
    place.run(["--code", "print(1)"]).env("HOTCELL_LANGUAGES", "").go().says("1\n");
}

#[test]
fn a_missing_tool_of_ones_own_names_its_package() {
    let place = Place::new();
    place.write("mine/perl.toml", PERL.replace("perl]", "no-such-tool]").replace("[\"perl\"]", "[\"no-such-tool\"]"));
    let file = place.write("work/a.pl", SOURCE);
    let run = place.run([&file]).env("HOTCELL_LANGUAGES", place.path("mine"));
    run.go().refused(&["no-such-tool", "perl", "install perl"]);
    let all = known(&place, |run| run.env("HOTCELL_LANGUAGES", place.path("mine")));
    let perl = named(&all, "perl");
    assert_eq!((&perl["available"], &perl["version"]), (&false.into(), &Value::Null));
    assert!(perl["missing"].as_str().is_some_and(|why| why.contains("install perl")), "{perl}");
}
