package com.example.app;

import com.example.app.Shape.Circle;
import com.example.app.Shape.Square;
import java.util.List;

public class Main {
    public static void main(String[] args) {
        List<Shape> shapes = List.of(new Circle(1.5), new Square(2), new Circle(0.5));
        Summary summary = new Summary(shapes);
        System.out.println(summary);
        shapes.stream().map(Shape::describe).sorted().forEach(System.out::println);
        System.out.println(Main.class.getPackageName());
    }
}
