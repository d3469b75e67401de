import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** Puts a lock file into the first directory that takes it. */
public class WriteUsr {
    private static Optional<Path> lock(List<Path> directories) {
        for (Path directory : directories) {
            try {
                return Optional.of(Files.writeString(directory.resolve("x"), "locked\n"));
            } catch (IOException error) {
                // The next one may do.
            }
        }
        return Optional.empty();
    }

    public static void main(String[] args) throws IOException {
        Path lock = lock(List.of(Path.of("/usr"), Path.of(""))).orElseThrow();
        System.out.println("lock in the working directory: " + !lock.isAbsolute());
        System.out.print(Files.readString(lock));
        Files.delete(lock);
        System.out.println("released: " + Files.notExists(lock));
    }
}
