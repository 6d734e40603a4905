package conformance

import (
	"time"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// Verdict is what a check has come to.
type Verdict string

const (
	// OK: the driver does what the interface asks for.
	OK Verdict = "ok"
	// Wrong: it does not.
	Wrong Verdict = "wrong"
	// Risk: it does, but in a way that goes wrong sometimes, or elsewhere.
	Risk Verdict = "risk"
	// NotTried: the check does not apply, or an earlier one is in the way.
	NotTried Verdict = "not tried"
)

// Result is one check.
type Result struct {
	Check   string
	Verdict Verdict
	// Did is what the driver did; Do is what its author should do about it, and empty for OK.
	Did, Do string
}

// Timing is how long the calls of one operation took.
type Timing struct {
	Operation   flexvolume.Operation
	Calls       int
	Median, Max time.Duration
}

// Report is the whole of a run.
type Report struct {
	Driver string
	// Version is the SHA-256 of the executable in hexadecimal.
	Version string
	// Capabilities are the driver's, if its init has succeeded.
	Capabilities flexvolume.Capabilities
	Results      []Result
	// Timings are those of the calls that were not killed.
	Timings []Timing
	// Seed is that of the Config, or the one that was chosen.
	Seed     uint64
	Duration time.Duration
}

// Count is how many checks have come to a verdict.
func (r Report) Count(verdict Verdict) (n int) {
	for _, result := range r.Results {
		if result.Verdict == verdict {
			n++
		}
	}
	return n
}

// result adds a result.
func (c *checker) result(check string, verdict Verdict, did, do string) {
	if verdict == OK {
		do = ""
	}
	result := Result{Check: check, Verdict: verdict, Did: did, Do: do}
	c.report.Results = append(c.report.Results, result)
	if c.Done != nil {
		c.Done(result)
	}
}

// judge adds a result: ok where problem is nil, else the verdict and the problem.
func (c *checker) judge(check string, problem error, verdict Verdict, did, do string) {
	if problem == nil {
		c.result(check, OK, did, "")
		return
	}
	c.result(check, verdict, problem.Error(), do)
}
