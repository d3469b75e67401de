import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Writes a diary to files and reads it back. */
public class FileDiary {
    private final Path directory;

    FileDiary(Path directory) throws IOException {
        this.directory = Files.createDirectories(directory);
    }

    void write(String day, List<String> lines) throws IOException {
        try (BufferedWriter writer = Files.newBufferedWriter(directory.resolve(day + ".txt"))) {
            for (String line : lines) {
                writer.write(line);
                writer.newLine();
            }
        }
    }

    long words() throws IOException {
        long count = 0;
        try (Stream<Path> days = Files.list(directory)) {
            for (Path day : days.sorted().toList()) {
                long words = Files.readString(day).split("\\s+").length;
                System.out.println(day.getFileName() + ": " + words);
                count += words;
            }
        }
        return count;
    }

    public static void main(String[] args) throws IOException {
        FileDiary diary = new FileDiary(Path.of("diary"));
        diary.write("monday", List.of("rain all day", "read a book"));
        diary.write("tuesday", List.of("sun", "went for a walk"));
        long words = diary.words();

        Path temporary = Files.createTempFile("diary", ".tmp");
        Files.writeString(temporary, "words=" + words + "\n");
        Path summary = Files.copy(temporary, Path.of("summary.txt"));
        Files.delete(temporary);
        System.out.print(Files.readString(summary));
    }
}
