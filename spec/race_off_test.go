//go:build !race

package spec_test

// slack is how much more may be spent than the limits say: other tests run beside.
const slack = 1
