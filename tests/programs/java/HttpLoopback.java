import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** An echo service and its client, over 127.0.0.1. */
public class HttpLoopback {
    private static void reply(HttpExchange exchange, int status, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(status, bytes.length);
        try (var out = exchange.getResponseBody()) {
            out.write(bytes);
        }
    }

    private static void handle(HttpExchange exchange) throws IOException {
        if (exchange.getRequestMethod().equals("POST")) {
            String text = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            reply(exchange, 200, new StringBuilder(text).reverse().toString());
        } else {
            reply(exchange, 405, "send me something");
        }
    }

    public static void main(String[] args) throws IOException, InterruptedException {
        InetAddress loopback = InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
        HttpServer server = HttpServer.create(new InetSocketAddress(loopback, 0), 0);
        server.createContext("/reverse", HttpLoopback::handle);
        server.start();
        try {
            talk(server.getAddress().getPort());
        } finally {
            server.stop(0);
        }
    }

    private static void talk(int port) throws IOException, InterruptedException {
        URI uri = URI.create("http://127.0.0.1:" + port + "/reverse");
        HttpClient client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(10)).build();
        HttpRequest.Builder request = HttpRequest.newBuilder(uri).version(HttpClient.Version.HTTP_1_1);

        for (String text : new String[] {"stressed", "drawer"}) {
            var response = client.send(
                    request.POST(HttpRequest.BodyPublishers.ofString(text)).build(),
                    HttpResponse.BodyHandlers.ofString());
            System.out.println(response.statusCode() + " " + response.body());
        }
        var refused = client.send(request.GET().build(), HttpResponse.BodyHandlers.ofString());
        System.out.println(refused.statusCode() + " " + refused.body());
    }
}
