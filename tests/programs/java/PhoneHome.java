import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;

/** Prints a triangle, and tries to register its user. */
public class PhoneHome {
    private static boolean register() {
        try (Socket socket = new Socket()) {
            InetAddress server = InetAddress.getByAddress(new byte[] {93, (byte) 184, (byte) 216, 34});
            socket.connect(new InetSocketAddress(server, 80), 2000);
            socket.getOutputStream().write("REGISTER\n".getBytes());
            return true;
        } catch (IOException error) {
            return false;
        }
    }

    private static long[] next(long[] row) {
        long[] below = new long[row.length + 1];
        for (int i = 0; i < row.length; i++) {
            below[i] += row[i];
            below[i + 1] += row[i];
        }
        return below;
    }

    public static void main(String[] args) {
        System.out.println("registered: " + register());
        long[] row = {1};
        for (int i = 0; i < 6; i++) {
            StringBuilder line = new StringBuilder(" ".repeat(2 * (5 - i)));
            for (long value : row) {
                line.append(String.format("%4d", value));
            }
            System.out.println(line);
            row = next(row);
        }
    }
}
