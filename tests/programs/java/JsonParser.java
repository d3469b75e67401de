import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** A recursive parser for JSON, without escapes. */
public class JsonParser {
    private final String text;
    private int at;

    JsonParser(String text) {
        this.text = text;
    }

    private char peek() {
        while (Character.isWhitespace(text.charAt(at))) at++;
        return text.charAt(at);
    }

    private void expect(char wanted) {
        if (peek() != wanted) throw new IllegalArgumentException("expected " + wanted + " at " + at);
        at++;
    }

    Object value() {
        return switch (peek()) {
            case '{' -> object();
            case '[' -> list();
            case '"' -> string();
            default -> word();
        };
    }

    private Map<String, Object> object() {
        Map<String, Object> fields = new TreeMap<>();
        expect('{');
        while (peek() != '}') {
            if (!fields.isEmpty()) expect(',');
            peek();
            String key = string();
            expect(':');
            fields.put(key, value());
        }
        expect('}');
        return fields;
    }

    private List<Object> list() {
        List<Object> items = new ArrayList<>();
        expect('[');
        while (peek() != ']') {
            if (!items.isEmpty()) expect(',');
            items.add(value());
        }
        expect(']');
        return items;
    }

    private String string() {
        int end = text.indexOf('"', at + 1);
        String inside = text.substring(at + 1, end);
        at = end + 1;
        return inside;
    }

    private Object word() {
        String word = text.substring(at).split("[,\\]}\\s]", 2)[0];
        at += word.length();
        return List.of("true", "false", "null").contains(word) ? word : Double.valueOf(word);
    }

    public static void main(String[] args) {
        String source = "{\"name\": \"probe\", \"on\": true, \"data\": [1, -2.5, 3e2, []], \"owner\": {\"id\": null}}";
        System.out.println(new JsonParser(source).value());
        try {
            new JsonParser("[1 2]").value();
        } catch (IllegalArgumentException error) {
            System.out.println("bad: " + error.getMessage());
        }
    }
}
