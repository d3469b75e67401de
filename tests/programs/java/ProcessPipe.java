import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Starts other programs and talks to them. */
public class ProcessPipe {
    record Result(int code, List<String> lines) {}

    private static Result run(String input, String... command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        try (Writer writer = process.outputWriter()) {
            writer.write(input);
        }
        List<String> lines;
        try (BufferedReader reader = process.inputReader()) {
            lines = reader.lines().toList();
        }
        if (!process.waitFor(20, TimeUnit.SECONDS)) {
            process.destroyForcibly();
        }
        return new Result(process.exitValue(), lines);
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        System.out.println(run("cherry\napple\nbanana\n", "sort"));
        System.out.println(run("a b c\n", "wc", "-w"));
        System.out.println(run("", "sh", "-c", "echo out; echo err >&2; exit 4"));
        try {
            run("", "no-such-program");
        } catch (IOException error) {
            System.out.println("cannot start no-such-program");
        }
    }
}
