"""The potential that holds an overlap near zero."""
