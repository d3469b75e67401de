import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Finds and rewrites dates in a text. */
public class RegexDates {
    private static final Pattern DATE =
            Pattern.compile("\\b(?<year>\\d{4})-(?<month>0[1-9]|1[0-2])-(?<day>[0-2]\\d|3[01])\\b");

    private static final String TEXT = """
            Released 2021-09-14, patched 2021-10-19.
            Not a date: 2021-13-40, nor 99-01-01.
            End of support: 2029-09-30.
            """;

    private static String european(String text) {
        return DATE.matcher(text).replaceAll("${day}.${month}.${year}");
    }

    public static void main(String[] args) {
        System.out.print(european(TEXT));

        Matcher matcher = DATE.matcher(TEXT);
        while (matcher.find()) {
            System.out.println(matcher.group("year") + " at " + matcher.start());
        }

        String snake = Pattern.compile("([a-z])([A-Z])").matcher("parseHttpRequest").replaceAll("$1_$2");
        System.out.println(snake.toLowerCase(Locale.ROOT));
        System.out.println(Pattern.compile("[,;]\\s*").splitAsStream("a, b;c,  d").collect(Collectors.joining("|")));
        System.out.println("rainbow".matches("(?i)RAIN.+") + " " + "rain".matches("rain.+"));
    }
}
