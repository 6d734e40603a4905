package register

import "github.com/anishathalye/porcupine"

// action is an operation type.
type action int

const (
	// read returns the register's value, or "" if the register does not exist.
	read action = iota
	// write sets the register's value.
	write
	// swap sets the value if the current value is the expected value. Otherwise, the API server
	// refuses the operation.
	swap
)

// input is an operation's input. Each value is written only once.
type input struct {
	register        string
	action          action
	expected, value string
}

// output is an operation's result: the value, a refusal, or unknown if there was no response.
type output struct {
	value            string
	refused, unknown bool
}

// model returns the model for the registers. It partitions the history by register, so the state is
// the value of one register.
func model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: partition,
		Init:      func() []any { return []any{""} },
		Step: func(state, in, out any) []any {
			return step(state.(string), in.(input), out.(output))
		},
	}
	return m.ToModel()
}

// partition groups the operations by register.
func partition(history []porcupine.Operation) [][]porcupine.Operation {
	byRegister := map[string][]porcupine.Operation{}
	for _, operation := range history {
		name := operation.Input.(input).register
		byRegister[name] = append(byRegister[name], operation)
	}
	var parts [][]porcupine.Operation
	for _, part := range byRegister {
		parts = append(parts, part)
	}
	return parts
}

// step returns the values that the register can have after an operation with the given result. It
// returns no values if the result contradicts state.
func step(state string, in input, out output) []any {
	switch {
	case in.action == read && state == out.value:
		return []any{state}
	case in.action == read:
		return nil
	case in.action == swap && (state == in.expected) == out.refused && !out.unknown:
		return nil
	case out.refused || in.action == swap && state != in.expected:
		return []any{state}
	case out.unknown:
		return []any{state, in.value}
	}
	return []any{in.value}
}
