//! Turns a square by multiplying matrices, and draws it.

use std::f64::consts::PI;
use std::ops::Mul;

#[derive(Clone, Copy)]
struct Matrix([[f64; 2]; 2]);

impl Matrix {
    fn rotation(degrees: f64) -> Self {
        let (sin, cos) = (degrees * PI / 180.0).sin_cos();
        Matrix([[cos, -sin], [sin, cos]])
    }

    fn apply(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        self.0.map(|[a, b]| a * x + b * y)
    }
}

impl Mul for Matrix {
    type Output = Matrix;

    fn mul(self, other: Matrix) -> Matrix {
        let cell = |row: usize, col: usize| (0..2).map(|k| self.0[row][k] * other.0[k][col]).sum();
        Matrix([[cell(0, 0), cell(0, 1)], [cell(1, 0), cell(1, 1)]])
    }
}

fn main() {
    let turned = Matrix::rotation(20.0) * Matrix::rotation(10.0);
    for row in -8..=8 {
        let line: String = (-18..=18)
            .map(|col| {
                let [x, y] = turned.apply([f64::from(col) / 2.0, f64::from(row)]);
                match x.abs().max(y.abs()) {
                    far if far > 6.0 => ' ',
                    far if far > 5.0 => '#',
                    _ => '.',
                }
            })
            .collect();
        println!("{}", line.trim_end());
    }
}
