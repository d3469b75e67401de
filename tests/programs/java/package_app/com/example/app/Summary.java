package com.example.app;

import java.util.List;
import java.util.Locale;

class Summary {
    private final int count;
    private final double total;

    Summary(List<Shape> shapes) {
        count = shapes.size();
        total = shapes.stream().mapToDouble(Shape::area).sum();
    }

    @Override
    public String toString() {
        return String.format(Locale.ROOT, "%d shapes, total area %.3f", count, total);
    }
}
