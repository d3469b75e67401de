import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Takes snapshots of a picture and never drops one. */
public class MemoryHog {
    private static final int SIZE = 1 << 20;

    private final List<byte[]> snapshots = new ArrayList<>();
    private final byte[] picture = new byte[SIZE];

    void paint(int color) {
        Arrays.fill(picture, (byte) color);
        snapshots.add(picture.clone());
    }

    public static void main(String[] args) {
        MemoryHog editor = new MemoryHog();
        System.out.println("painting");
        for (int color = 1; ; color = color % 127 + 1) {
            editor.paint(color);
        }
    }
}
