'use strict';

// Prints the names of users; the last one has no profile.

const users = [
  { id: 1, profile: { first: 'Ada', last: 'Lovelace' } },
  { id: 2, profile: { first: 'Alan', last: 'Turing' } },
  { id: 3 },
];

function fullName(user) {
  const { first, last } = user.profile;
  return `${first} ${last}`;
}

for (const user of users) {
  console.log(`${user.id}: ${fullName(user)}`);
}

console.log('this line is never reached');
