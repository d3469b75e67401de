//! Where a program comes from and what it is given: files, text, directories, arguments, input, environment.

use crate::harness::*;

#[test]
fn a_source_from_standard_input() {
    let place = Place::new();
    place.run(["-"]).stdin("print('from', __file__)").go().says("from /src/main.py\n");
    place.run(["--lang", "javascript", "-"]).stdin("console.log(typeof require)").go().says("function\n");
    place.run(["--lang", "bash", "-"]).stdin("echo \"$# $1\"").args(&["x y"]).go().says("1 x y\n");
    // The source is all of it: nothing is left for the program to read.
    place.run(["-"]).stdin("import sys; print(repr(sys.stdin.read()))").go().says("''\n");
    place.run(["--lang", "c", "-"]).stdin("int main(void) { return 0; }").go().passes();
    let text = place.text(["-"]).stdin("print(1)").go();
    assert_eq!((text.code, text.out().as_str(), text.stderr.as_str()), (0, "1\n", ""));
}

#[test]
fn a_source_from_standard_input_beside_an_input_of_its_own() {
    let place = Place::new();
    place.write("work/in.txt", "of the file");
    place.run(["-", "--stdin", "in.txt"]).stdin("print(input())").go().says("of the file\n");
}

#[test]
fn code_in_python() {
    let place = Place::new();
    place
        .run(["--code", "import sys\nprint(sys.argv)"])
        .args(&["a", "-b", "--", ""])
        .go()
        .says("['/src/main.py', 'a', '-b', '--', '']\n");
    place.run(["--lang", "py", "--code", ""]).go().says("");
    assert_eq!(place.files(&[]), Vec::<String>::new());
}

#[test]
fn code_in_javascript_is_a_module_by_its_own_words() {
    let place = Place::new();
    let run = |code: &str| place.run(["--lang", "js", "--code", code]).go();
    run("const path = require('path'); console.log(path.basename(__filename))").says("main.js\n");
    run("import { basename } from 'path'; console.log(basename(import.meta.url))").says("main.mjs\n");
    run("const x = await Promise.resolve(3);\nconsole.log(x);\nexport default x;\n").says("3\n");
    // A word in a text makes no module.
    run("console.log(\"we import nothing\"); console.log(typeof require)").says("we import nothing\nfunction\n");
    run("const x = ;").fails("SyntaxError", 1);
    run("import { x from 'path';").fails("SyntaxError", 1);
}

#[test]
fn javascript_in_a_file_whose_name_says_nothing_fails_by_what_it_does() {
    let place = Place::new();
    for (code, class) in [("throw new Error('own')", "RuntimeError"), ("const x = ;", "SyntaxError")] {
        let file = place.write("x.code", code);
        place.run(["--lang", "js", file.to_str().expect("UTF-8")]).go().fails(class, 1);
    }
}

#[test]
fn code_in_java_is_named_after_its_class() {
    let place = Place::new();
    let run = |code: &str| place.run(["--lang", "java", "--code", code]).args(&["x"]).go();
    let main = "public static void main(String[] a) { System.out.println(a[0] + A.class.getName()); }";
    let main_of = |name: &str| main.replace("A.class", &format!("{name}.class"));
    run(&format!("public class Greeter {{ {} }}", main_of("Greeter"))).says("xGreeter\n");
    run(&format!("public final class Other {{ {} }}", main_of("Other"))).says("xOther\n");
    run(&format!("class Quiet {{ {} }}", main_of("Quiet"))).says("xQuiet\n");
    run(&format!("package a.b;\npublic class Deep {{ {} }}", main_of("Deep"))).says("xa.b.Deep\n");
    run(&format!("class Helper {{}}\npublic class Z {{ {} }}", main_of("Z"))).says("xZ\n");
    run(&format!("public record Point(int x) {{ {} }}", main_of("Point"))).says("xPoint\n");
}

/// Only the class at the top gives the file its name.
#[test]
fn code_in_java_is_named_after_its_outer_public_class() {
    let place = Place::new();
    let run = |code: &str| place.run(["--lang", "java", "--code", code]).go();
    let main = "public static void main(String[] a) { System.out.println(1); }";
    run(&format!("class Helper {{\n    public record P(int x) {{}}\n}}\npublic class Main {{ {main} }}")).says("1\n");
    run(&format!("@SuppressWarnings(\"unchecked\") public class Foo {{ {main} }}")).says("1\n");
    run(&format!("/*\npublic class Old {{}}\n*/\npublic class New {{ {main} }}")).says("1\n");
}

#[test]
fn code_in_go_rust_c_and_bash() {
    let place = Place::new();
    let go = "package main\nimport (\"fmt\"; \"os\")\nfunc main() { fmt.Println(os.Args[1:]) }\n";
    place.run(["--lang", "go", "--code", go]).args(&["a", "b c"]).go().says("[a b c]\n");
    let rust = "fn main() { println!(\"{:?}\", std::env::args().skip(1).collect::<Vec<_>>()) }";
    place.run(["--lang", "rust", "--code", rust]).args(&["a", "b c"]).go().says("[\"a\", \"b c\"]\n");
    let c = "#include <stdio.h>\nint main(int n, char **v) { printf(\"%d %s\\n\", n, v[1]); return 5; }\n";
    place.run(["--lang", "c", "--code", c]).args(&["a"]).go().fails("RuntimeError", 5);
    place.run(["--lang", "sh", "--code", "echo ${BASH_VERSION:0:0}$1"]).args(&["a"]).go().says("a\n");
}

#[test]
fn the_extension_says_the_language_and_the_flag_overrides_it() {
    let place = Place::new();
    let file = place.write("work/a.txt", "print('python')");
    place.run([file.as_os_str(), "--lang".as_ref(), "python".as_ref()]).go().says("python\n");
    let file = place.write("work/a.py", "console.log('javascript')");
    place.run([file.as_os_str(), "--lang".as_ref(), "node".as_ref()]).go().says("javascript\n");
    for (name, source) in
        [("a.js", "console.log(1)"), ("a.mjs", "import 'fs'; console.log(1)"), ("a.cjs", "console.log(1)")]
    {
        place.run([place.write(&format!("work/{name}"), source)]).go().says("1\n");
    }
}

/// A language that is named needs no extension.
#[test]
fn the_flag_is_enough_for_a_compiled_language() {
    let place = Place::new();
    for (language, source) in [
        ("rust", "fn main() { println!(\"1\") }"),
        ("c", "#include <stdio.h>\nint main(void) { puts(\"1\"); return 0; }\n"),
        ("go", "package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }\n"),
        ("java", "class It { public static void main(String[] a) { System.out.println(1); } }"),
    ] {
        let file = place.write("work/source.txt", source);
        let ran = place.run([file.as_os_str(), "--lang".as_ref(), language.as_ref()]).go();
        ran.says("1\n");
    }
}

/// A source of a directory may be a link to another file of it.
#[test]
fn a_link_in_a_directory_is_compiled_like_a_file() {
    let place = Place::new();
    place.write("project/real.txt", "#include <stdio.h>\nint main(void) { puts(\"1\"); return 0; }\n");
    std::os::unix::fs::symlink("real.txt", place.path("project/main.c")).expect("ours");
    place.run([place.path("project")]).go().says("1\n");
}

#[test]
fn names_that_are_unusual() {
    let place = Place::new();
    for name in
        ["with space.py", "-dash.py", "ünïcode.py", "quote'\".py", "$HOME.py", "a.b.py", "{entry}.py", "{args}.py"]
    {
        let file = place.write(&format!("work/{name}"), "import os; print(os.path.basename(__file__))");
        place.run([&file]).go().says(&format!("{name}\n"));
    }
    let file = place.write("work/with space.c", "#include <stdio.h>\nint main(void) { puts(\"1\"); return 0; }\n");
    place.run([&file]).go().says("1\n");
}

fn modules(place: &Place) {
    place.write(
        "project/main.py",
        "import helper\nfrom package import inner\nprint(helper.NAME, inner.name(), __name__)",
    );
    place.write("project/other.py", "import sys, helper\nprint('other', helper.NAME, sys.argv[1:])");
    place.write("project/helper.py", "NAME = 'helper'");
    place.write("project/package/__init__.py", "");
    place.write("project/package/inner.py", "from . import beside\ndef name(): return beside.NAME");
    place.write("project/package/beside.py", "NAME = 'beside'");
    place.write("project/tools/run.py", "print(open('/src/tools/data.txt').read())");
    place.write("project/tools/data.txt", "data");
}

#[test]
fn a_directory_of_python_modules() {
    let place = Place::new();
    modules(&place);
    let before = contents(&place.path("project"));
    let said = "helper beside __main__\n";
    place.run([place.path("project")]).go().says(said);
    place.run(["--input".into(), place.path("project")]).go().says(said);
    place.run(["--input".into(), place.path("project"), place.path("project/main.py")]).go().says(said);
    place.run(["."]).cwd(place.path("project")).go().says(said);
    place.run(["--input", ".", "main.py"]).cwd(place.path("project")).go().says(said);
    assert!(before == contents(&place.path("project")), "the sources were changed");
}

#[test]
fn an_entry_of_a_directory() {
    let place = Place::new();
    modules(&place);
    let project = place.path("project").into_os_string();
    let run = |words: &[&str]| {
        let words = words.iter().map(|word| if *word == "DIR" { project.clone() } else { word.into() });
        place.run(words).cwd(place.path("project"))
    };
    run(&["DIR", "--entry", "other.py"]).args(&["a"]).go().says("other helper ['a']\n");
    run(&["--input", "DIR", "--entry", "other.py"]).go().says("other helper []\n");
    run(&["--input", "DIR", "other.py"]).go().says("other helper []\n");
    run(&["DIR", "--entry", "tools/run.py"]).go().says("data\n");
    run(&["--input", "DIR", "tools/../other.py"]).go().says("other helper []\n");
    run(&["--input", "DIR", "--entry", "other.py", "other.py"]).go().refused(&["--entry"]);
}

#[test]
fn a_directory_says_its_language() {
    let place = Place::new();
    place.write("js/index.js", "console.log(require('./lib/it').word)");
    place.write("js/lib/it.js", "exports.word = 'common'");
    place.run([place.path("js")]).go().says("common\n");
    place.write("esm/package.json", "{ \"type\": \"module\" }");
    place.write("esm/index.js", "import { word } from './lib/it.js'; console.log(word)");
    place.write("esm/lib/it.js", "export const word = 'module'");
    place.run([place.path("esm")]).go().says("module\n");
    place.write("mixed/main.mjs", "import it from './it.cjs'; console.log(it.word)");
    place.write("mixed/it.cjs", "module.exports = { word: 'both' }");
    place.run([place.path("mixed")]).go().says("both\n");
    place.write("go/go.mod", "module example.com/it\n\ngo 1.19\n");
    place.write(
        "go/main.go",
        "package main\nimport (\"fmt\"; \"example.com/it/word\")\nfunc main() { fmt.Println(word.Word) }\n",
    );
    place.write("go/word/word.go", "package word\n\nconst Word = \"go\"\n");
    place.run([place.path("go")]).go().says("go\n");
    place.write("only/whatever.py", "print('the only one')");
    place.run([place.path("only")]).go().says("the only one\n");
    assert!(place.files(&["home/.cache", "js", "esm", "mixed", "go", "only"]).is_empty());
}

#[test]
fn a_java_package_layout() {
    let place = Place::new();
    place.write(
        "project/com/example/Main.java",
        "package com.example;\nimport com.example.util.Words;\npublic class Main {\n\
         public static void main(String[] a) { System.out.println(Words.word() + a.length); } }\n",
    );
    place.write(
        "project/com/example/util/Words.java",
        "package com.example.util;\npublic class Words { public static String word() { return \"java\"; } }\n",
    );
    let run = |words: &[&str]| {
        let project = place.path("project").into_os_string();
        place.run([project].into_iter().chain(words.iter().map(Into::into))).args(&["x"]).go()
    };
    run(&["--lang", "java"]).says("java1\n");
    run(&["--entry", "com/example/Main.java"]).says("java1\n");
    std::fs::create_dir_all(place.path("maven/src/main")).expect("ours");
    std::fs::rename(place.path("project"), place.path("maven/src/main/java")).expect("ours");
    place.run([place.path("maven").as_os_str(), "--lang".as_ref(), "java".as_ref()]).args(&["x"]).go().says("java1\n");
}

/// More than one class can begin: it is the one that was named.
#[test]
fn a_java_entry_is_the_class_that_runs() {
    let place = Place::new();
    for name in ["A", "B", "C"] {
        let main = format!("System.out.println(\"{name}\");");
        place.write(
            &format!("project/{name}.java"),
            format!("public class {name} {{ public static void main(String[] a) {{ {main} }} }}"),
        );
    }
    for name in ["A", "B", "C"] {
        let entry = format!("{name}.java");
        let project = place.path("project");
        let ran = place.run([project.as_os_str(), "--entry".as_ref(), entry.as_ref()]).go();
        ran.says(&format!("{name}\n"));
    }
}

/// And where nothing was named, the one that a Java program usually begins with.
#[test]
fn a_java_directory_begins_with_main() {
    let place = Place::new();
    for name in ["Alpha", "Main"] {
        let main = format!("System.out.println(\"{name}\");");
        place.write(
            &format!("project/{name}.java"),
            format!("public class {name} {{ public static void main(String[] a) {{ {main} }} }}"),
        );
    }
    place.run([place.path("project")]).go().says("Main\n");
}

#[test]
fn arguments_arrive_as_they_are() {
    let place = Place::new();
    let file = place.write("work/a.py", "import sys\nfor a in sys.argv[1:]: print(repr(a))");
    let args = ["", " ", "a b", "--output", "-h", "*", "$HOME", "'\"", "ü", "{entry}", "{args}", "{main_class}", "\n"];
    let said =
        "''\n' '\n'a b'\n'--output'\n'-h'\n'*'\n'$HOME'\n'\\'\"'\n'ü'\n'{entry}'\n'{args}'\n'{main_class}'\n'\\n'\n";
    place.run([&file]).args(&args).go().says(said);
}

/// Words of a program that look like words of a language file are the program's.
#[test]
fn arguments_that_look_like_words_of_a_language_file_arrive_as_they_are() {
    let place = Place::new();
    let python = place.write("work/a.py", "import sys; print(sys.argv[1:])");
    place.run([&python]).args(&["{prepared}", "x"]).go().says("['{prepared}', 'x']\n");
    let source =
        "#include <stdio.h>\nint main(int n, char **v) { for (int i = 1; i < n; i++) puts(v[i]); return 0; }\n";
    let file = place.write("work/a.c", source);
    let args = ["{main_class}", "{prepared}", "{args}", "{entry}", "last"];
    for _ in 0..2 {
        place.run([&file]).args(&args).go().says("{main_class}\n{prepared}\n{args}\n{entry}\nlast\n");
    }
}

#[test]
fn standard_input_is_the_callers_or_a_files() {
    let place = Place::new();
    let file = place.write("work/a.py", "import sys; print(len(sys.stdin.buffer.read()))");
    place.run([&file]).stdin(vec![b'x'; 300_000]).go().says("300000\n");
    place.run([&file]).go().says("0\n");
    place.write("work/in.bin", vec![0xff; 70_000]);
    let words = [file.as_os_str(), "--stdin".as_ref(), "in.bin".as_ref()];
    place.run(words).stdin("not this").go().says("70000\n");
    place.run([file.as_os_str(), "--stdin".as_ref(), "/dev/null".as_ref()]).stdin("not this").go().says("0\n");
    place.run([file.as_os_str(), "--stdin".as_ref(), "nowhere".as_ref()]).go().refused(&["nowhere"]);
}

#[test]
fn the_environment_is_what_was_given_and_not_the_callers() {
    let place = Place::new();
    let all = "import os\nfor k in sorted(os.environ): print(k, os.environ[k])";
    let file = place.write("work/a.py", all);
    let words = ["--env", "A=1", "--env", "B=x=y", "--env", "EMPTY=", "--env", "SECRET_OF_THE_HOST"];
    let words = words.iter().map(Into::into).chain([file.clone().into_os_string()]);
    let ran = place.run(words).go().passes();
    for line in ["A 1\n", "B x=y\n", "EMPTY \n", "SECRET_OF_THE_HOST do-not-tell\n", "HOME /work\n", "USER cell\n"] {
        assert!(ran.out().contains(line), "`{line}` is not in {}", ran.out());
    }
    let ran = place.run([&file]).env("PYTHONPATH", "/evil").env("LD_PRELOAD_NOT", "x").go().passes();
    for name in ["SECRET_OF_THE_HOST", "RUSTUP_HOME", "PYTHONPATH", "LD_PRELOAD_NOT"] {
        assert!(!ran.out().contains(name), "{name} is in {}", ran.out());
    }
    assert!(!ran.out().contains(&place.dir.display().to_string()), "a path of the host: {}", ran.out());
}

#[test]
fn a_variable_of_the_callers_comes_before_that_of_the_language() {
    let place = Place::new();
    let source = "package main\nimport (\"fmt\"; \"os\")\nfunc main() { fmt.Println(os.Getenv(\"GOMEMLIMIT\")) }\n";
    let file = place.write("work/a.go", source);
    place.run([&file]).go().says("966367638B\n");
    let words = [file.as_os_str(), "--env".as_ref(), "GOMEMLIMIT=100MiB".as_ref()];
    assert!(place.run(words).go().says("100MiB\n").cached(), "a variable of the run is none of the compiler's");
}

#[test]
fn a_link_to_a_source_is_its_source() {
    let place = Place::new();
    place.write("work/real.py", "print('real')");
    std::os::unix::fs::symlink("real.py", place.path("work/link.py")).expect("ours");
    place.run(["link.py"]).go().says("real\n");
    modules(&place);
    std::os::unix::fs::symlink("other.py", place.path("project/link.py")).expect("ours");
    place
        .run([place.path("project").as_os_str(), "--entry".as_ref(), "link.py".as_ref()])
        .go()
        .says("other helper []\n");
}

/// `hotcell run <(generate)`: a pipe is a file like others.
#[test]
fn a_source_that_is_a_pipe() {
    let place = Place::new();
    let script = "exec \"$0\" run --lang python --output json /dev/stdin";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("echo 'print(6*7)' | {script}")]).arg(binary()).env("HOME", place.path("home"));
    let output = shell.output().expect("sh starts");
    let outcome: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an Outcome");
    assert_eq!(outcome["stdout"], "42\n", "{outcome}");
}
