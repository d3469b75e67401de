package com.example.app;

import java.util.Locale;

public sealed interface Shape {
    double area();

    default String describe() {
        return String.format(Locale.ROOT, "%s %.2f", getClass().getSimpleName().toLowerCase(Locale.ROOT), area());
    }

    record Circle(double radius) implements Shape {
        @Override
        public double area() {
            return Math.PI * radius * radius;
        }
    }

    record Square(double side) implements Shape {
        @Override
        public double area() {
            return side * side;
        }
    }
}
