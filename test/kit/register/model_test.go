package register

import (
	"math"
	"testing"

	"github.com/anishathalye/porcupine"
)

// operation returns an operation with the given start and end times. A negative end means that
// there was no response.
func operation(from, to int64, in input, out output) porcupine.Operation {
	if in.register = "r"; to < 0 {
		to, out.unknown = math.MaxInt64, true
	}
	return porcupine.Operation{Input: in, Output: out, Call: from, Return: to}
}

func TestModelRejectsImpossibleHistories(t *testing.T) {
	one, two := input{action: write, value: "1"}, input{action: write, value: "2"}
	reads := func(from, to int64, value string) porcupine.Operation {
		return operation(from, to, input{action: read}, output{value: value})
	}
	swaps := input{action: swap, expected: "1", value: "2"}
	for name, tt := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"a value is read after its write":               {[]porcupine.Operation{operation(1, 2, one, output{}), reads(3, 4, "1")}, true},
		"an acknowledged write is lost":                 {[]porcupine.Operation{operation(1, 2, one, output{}), reads(3, 4, "")}, false},
		"a read returns an older value":                 {[]porcupine.Operation{operation(1, 2, one, output{}), operation(3, 4, two, output{}), reads(5, 6, "1")}, false},
		"a write without a response takes effect later": {[]porcupine.Operation{operation(1, -1, one, output{}), reads(3, 4, ""), reads(5, 6, "1")}, true},
		"a write without a response takes effect twice": {[]porcupine.Operation{operation(1, -1, one, output{}), operation(2, 3, two, output{}), reads(4, 5, "1"), operation(6, 7, input{action: write, value: "3"}, output{}), reads(8, 9, "1")}, false},
		"a swap replaces the value that was read":       {[]porcupine.Operation{operation(1, 2, one, output{}), operation(3, 4, swaps, output{}), reads(5, 6, "2")}, true},
		"a swap replaces another value":                 {[]porcupine.Operation{operation(1, 2, two, output{}), operation(3, 4, swaps, output{})}, false},
		"a swap is refused for the expected value":      {[]porcupine.Operation{operation(1, 2, one, output{}), operation(3, 4, swaps, output{refused: true})}, false},
		"a swap is refused for another value":           {[]porcupine.Operation{operation(1, 2, two, output{}), operation(3, 4, swaps, output{refused: true})}, true},
		"a swap without a response has no effect":       {[]porcupine.Operation{operation(1, 2, two, output{}), operation(3, -1, swaps, output{}), reads(5, 6, "2")}, true},
		"a swap without a response takes effect later":  {[]porcupine.Operation{operation(1, 2, one, output{}), operation(3, -1, swaps, output{}), reads(5, 6, "1"), reads(7, 8, "2")}, true},
	} {
		if got := porcupine.CheckOperations(model(), tt.history); got != tt.want {
			t.Errorf("%s: an order exists: %t, want %t", name, got, tt.want)
		}
	}
}
