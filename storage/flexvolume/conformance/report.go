package conformance

import (
	"time"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// Verdict is the result of a check, or of all checks on a driver.
type Verdict string

const (
	// OK means that the driver conforms to the interface.
	OK Verdict = "ok"
	// Wrong means that an ordinary pod cannot use the driver's volumes.
	Wrong Verdict = "wrong"
	// Risk means that ordinary pods can use the driver's volumes, but that the driver does not
	// conform to the interface, or can fail after a crash, under load, with unusual options or on
	// other platforms.
	Risk Verdict = "risk"
	// NotTried means that the check does not apply, or that an earlier check failed.
	NotTried Verdict = "not tried"
)

// Result is the result of one check.
type Result struct {
	Check   string
	Verdict Verdict
	// Finding describes the driver's behavior. Remedy is the change that the driver's author should
	// make. It is empty for OK.
	Finding, Remedy string
}

// Timing summarizes the durations of an operation's calls.
type Timing struct {
	Operation   flexvolume.Operation
	Calls       int
	Median, Max time.Duration
}

// Report is the result of a run.
type Report struct {
	Driver string
	// Version is the SHA-256 of the executable, in hexadecimal.
	Version string
	// Capabilities is set if init succeeded.
	Capabilities flexvolume.Capabilities
	Results      []Result
	// Timings holds the durations of the calls that were not killed.
	Timings []Timing
	// Seed is Config.Seed or the generated seed.
	Seed     uint64
	Duration time.Duration
}

// Verdict returns the overall verdict: the worst of the results.
func (r Report) Verdict() Verdict {
	switch {
	case r.Count(Wrong) > 0:
		return Wrong
	case r.Count(Risk) > 0:
		return Risk
	}
	return OK
}

// checks returns the names of the checks with the given verdict.
func (r Report) checks(verdict Verdict) (names []string) {
	for _, result := range r.Results {
		if result.Verdict == verdict {
			names = append(names, result.Check)
		}
	}
	return names
}

// Count returns the number of checks with the given verdict.
func (r Report) Count(verdict Verdict) int { return len(r.checks(verdict)) }

func (c *checker) result(check string, verdict Verdict, finding, remedy string) {
	if verdict == OK {
		remedy = ""
	}
	result := Result{Check: check, Verdict: verdict, Finding: finding, Remedy: remedy}
	c.report.Results = append(c.report.Results, result)
	if c.Done != nil {
		c.Done(result)
	}
}

// check adds a result: OK if failure is nil, otherwise verdict and the failure.
func (c *checker) check(check string, failure error, verdict Verdict, finding, remedy string) {
	if failure == nil {
		c.result(check, OK, finding, "")
		return
	}
	c.result(check, verdict, failure.Error(), remedy)
}
