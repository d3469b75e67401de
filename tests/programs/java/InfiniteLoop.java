/** Waits for a float to become exactly ten. */
public class InfiniteLoop {
    static class Odometer {
        private float kilometers;

        void drive(float distance) {
            kilometers += distance;
        }

        boolean arrived(float target) {
            return kilometers == target;
        }
    }

    static long trip(float step, float target) {
        Odometer odometer = new Odometer();
        long steps = 0;
        while (!odometer.arrived(target)) {
            odometer.drive(step);
            steps++;
        }
        return steps;
    }

    public static void main(String[] args) {
        System.out.println("steps of 0.5: " + trip(0.5f, 10f));
        System.out.println("steps of 0.1: " + trip(0.1f, 10f));
    }
}
