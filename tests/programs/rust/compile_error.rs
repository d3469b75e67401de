//! Does not compile: a value is used after it was moved.

#[derive(Debug)]
struct Parcel {
    address: String,
    grams: u32,
}

struct Truck {
    parcels: Vec<Parcel>,
}

impl Truck {
    fn load(&mut self, parcel: Parcel) {
        self.parcels.push(parcel);
    }
}

fn main() {
    let mut truck = Truck { parcels: Vec::new() };
    let parcel = Parcel { address: String::from("1 Main Street"), grams: 750 };
    truck.load(parcel);
    println!("this line is never reached: {} to {}", parcel.grams, parcel.address);
}
