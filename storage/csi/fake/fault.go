package fake

import (
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Fault is what goes wrong with one call. The zero value is nothing. Effects come in the order of the fields.
type Fault struct {
	// Delay passes before the call does anything, unless the caller gives up first.
	Delay time.Duration
	// Before is answered and the call does nothing.
	Before error
	// After is answered although the call had its effect.
	After error
	// Hang gives no answer before the caller gives up, although the call had its effect.
	Hang bool
	// Crash breaks every connection, after the effect and without an answer; the driver is there again at once.
	Crash bool
	// Lie changes a good answer.
	Lie func(answer proto.Message)
}

// Call is a call that arrived.
type Call struct {
	Method  string // such as CreateVolume
	Request proto.Message
	Code    codes.Code // that was answered, or Canceled for none
}

// Plan decides what goes wrong with a call; nth counts the calls of its method from 1. It may be asked by several
// goroutines at once.
type Plan func(method string, nth int) Fault

// Times makes the first n calls of a method go wrong.
func Times(n int, method string, fault Fault) Plan {
	return func(called string, nth int) Fault {
		if called == method && nth <= n {
			return fault
		}
		return Fault{}
	}
}

// Always makes every call of a method go wrong.
func Always(method string, fault Fault) Plan {
	return func(called string, _ int) Fault {
		if called == method {
			return fault
		}
		return Fault{}
	}
}

// Both lets the first plan that wants something go wrong decide.
func Both(plans ...Plan) Plan {
	return func(method string, nth int) Fault {
		for _, plan := range plans {
			if fault := plan(method, nth); !fault.none() {
				return fault
			}
		}
		return Fault{}
	}
}

// Random makes about rate (0 to 1) of the calls go wrong until calls calls have been made, in any way in which a driver
// may fail for a while. The same seed gives the same faults for the same order of calls.
func Random(seed uint64, rate float64, calls int) Plan {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, seed))
	return func(string, int) Fault {
		mu.Lock()
		defer mu.Unlock()
		if calls--; calls < 0 || random.Float64() >= rate {
			return Fault{}
		}
		return randomFault(random)
	}
}

// passing are errors after which a caller has to try again.
var passing = []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.ResourceExhausted, codes.Unknown}

func randomFault(random *rand.Rand) Fault {
	err := status.Error(passing[random.IntN(len(passing))], "injected by the test")
	switch random.IntN(5) {
	case 0:
		return Fault{Before: err}
	case 1:
		return Fault{After: err}
	case 2:
		return Fault{Hang: true}
	case 3:
		return Fault{Crash: true}
	default:
		return Fault{Delay: time.Duration(random.IntN(5)) * time.Millisecond}
	}
}

func (f Fault) none() bool {
	return f.Delay == 0 && f.Before == nil && f.After == nil && !f.Hang && !f.Crash && f.Lie == nil
}

// Calls are the calls so far in the order of their end, all of them or those of the methods.
func (d *Driver) Calls(methods ...string) (found []Call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, call := range d.calls {
		for _, method := range methods {
			if call.Method == method {
				found = append(found, call)
			}
		}
		if len(methods) == 0 {
			found = append(found, call)
		}
	}
	return found
}
