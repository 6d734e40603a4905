package fake

import (
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Fault is the fault that is injected into one call. The zero value means no fault. The effects
// occur in the order of the fields.
type Fault struct {
	// Delay is the delay before the call. The caller can cancel the call during the delay.
	Delay time.Duration
	// Before is the error that is returned without executing the call.
	Before error
	// After is the error that is returned after executing the call.
	After error
	// Hang executes the call but sends no response until the caller cancels the call.
	Hang bool
	// Crash executes the call, then closes all connections without a response. The driver restarts
	// immediately.
	Crash bool
	// Lie modifies a successful response.
	Lie func(response proto.Message)
}

// Call is a received call.
type Call struct {
	Method  string // such as CreateVolume
	Request proto.Message
	Code    codes.Code // Canceled if there was no response
}

// Plan returns the fault for a call. nth is 1 for the first call to a method, 2 for the second call
// to the same method, and so on. A Plan must be safe for concurrent use.
type Plan func(method string, nth int) Fault

// Times returns a plan in which the first n calls to a method have a fault.
func Times(n int, method string, fault Fault) Plan {
	return func(called string, nth int) Fault {
		if called == method && nth <= n {
			return fault
		}
		return Fault{}
	}
}

// Always returns a plan in which every call to a method has a fault.
func Always(method string, fault Fault) Plan {
	return func(called string, _ int) Fault {
		if called == method {
			return fault
		}
		return Fault{}
	}
}

// Both combines plans. The first plan that returns a fault takes precedence.
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

// Random returns a plan in which each call has a random temporary fault with probability rate (0 to
// 1). After the given number of calls, no call has a fault. The same seed produces the same faults
// for the same order of calls.
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

// temporaryCodes lists the error codes for which a caller must retry.
var temporaryCodes = []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.ResourceExhausted, codes.Unknown}

func randomFault(random *rand.Rand) Fault {
	err := status.Error(temporaryCodes[random.IntN(len(temporaryCodes))], "injected by the test")
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

// Calls returns all calls so far, or only the calls to the given methods, in order of completion.
func (d *Driver) Calls(methods ...string) (calls []Call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, call := range d.calls {
		for _, method := range methods {
			if call.Method == method {
				calls = append(calls, call)
			}
		}
		if len(methods) == 0 {
			calls = append(calls, call)
		}
	}
	return calls
}
