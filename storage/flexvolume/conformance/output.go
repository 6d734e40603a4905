package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// output checks the output and exit codes of all calls so far.
func (c *checker) output(context.Context) {
	faults := map[string]error{}
	record := func(check string, outcome flexvolume.TrialResult, format string, args ...any) {
		if faults[check] == nil {
			faults[check] = fmt.Errorf("%s: "+format, append([]any{outcome.Operation}, args...)...)
		}
	}
	for _, outcome := range c.calls {
		if outcome.Killed {
			continue
		}
		switch flexvolume.KindOf(outcome.Err) {
		case flexvolume.KindTimeout:
			record("output-deadline", outcome, "%s", outcome.Err)
			continue
		case flexvolume.KindWrongType, flexvolume.KindSize, flexvolume.KindStatus:
			record("output-fields", outcome, "%s", outcome.Err)
		}
		if !outcome.OneObject {
			record("output-json", outcome, "standard output is %q and standard error %q", shorten(outcome.Stdout), shorten(outcome.Stderr))
			continue
		}
		if strings.TrimSpace(outcome.Stderr) != "" {
			record("output-noise", outcome, "standard error is %q", shorten(outcome.Stderr))
		}
		switch {
		case outcome.Status == "":
		case (outcome.Status == "Success") != (outcome.ExitCode == 0):
			record("output-exit", outcome, "it returns %q and exits with %d", outcome.Status, outcome.ExitCode)
		case outcome.ExitCode > 1:
			record("output-exit-one", outcome, "it returns %q and exits with %d", outcome.Status, outcome.ExitCode)
		}
	}
	for _, check := range []struct {
		check    string
		verdict  Verdict
		past, do string
	}{
		{"output-json", Risk, "each call prints one JSON object to standard output and nothing else",
			"print the response once, to standard output, and let no other command print there"},
		{"output-fields", Risk, "the fields have the types of the interface",
			`use "Success", "Failure" or "Not supported", in this case; true and false without quotes; sizes as numbers of bytes`},
		{"output-noise", Risk, "it prints nothing to standard error",
			"print nothing to standard error in addition to the response: Slipway ignores it, but Kubernetes treats it as part of the response; log to a file or with logger"},
		{"output-exit", Risk, "it exits with 0 for Success only", "exit with 0 for Success and with 1 for everything else"},
		{"output-exit-one", Risk, "it exits with 1 for all other responses", "exit with 1"},
		{"output-deadline", Risk, "each call ends", "return Failure before the deadline: make sure that no command waits forever, such as for a server that is down"},
	} {
		c.check(check.check, faults[check.check], check.verdict, check.past, check.do)
	}
}

func shorten(text string) string {
	const maxBytes = 200
	text = strings.TrimSpace(text)
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes], "") + "…"
}

// Limits on the duration of a call. fastCallLimit applies to operations that block the kubelet or
// the controller.
const (
	fastCallLimit = 2 * time.Second
	callLimit     = 20 * time.Second
)

// time checks the durations of the calls.
func (c *checker) time(context.Context) {
	durations := map[flexvolume.Operation][]time.Duration{}
	for _, outcome := range c.calls {
		if !outcome.Killed {
			durations[outcome.Operation] = append(durations[outcome.Operation], outcome.Duration)
		}
	}
	var errs []error
	for _, op := range slices.Concat(flexvolume.Operations(), []flexvolume.Operation{noSuchOperation}) {
		calls := durations[op]
		if len(calls) == 0 {
			continue
		}
		timing := Timing{Operation: op, Calls: len(calls), Median: median(calls), Max: slices.Max(calls)}
		c.report.Timings = append(c.report.Timings, timing)
		limit := callLimit
		if op == flexvolume.OpInit || op == flexvolume.OpGetVolumeName || op == flexvolume.OpIsAttached || op == noSuchOperation {
			limit = fastCallLimit
		}
		if timing.Max > limit {
			errs = append(errs, fmt.Errorf("%s takes up to %.1f s", op, timing.Max.Seconds()))
		}
	}
	c.check("time", errors.Join(errs...), Risk, fmt.Sprintf("%d calls, none of them slow", len(c.calls)),
		"in init, getvolumename and isattached, do only fast work; in other operations, wait only for what is necessary")
}

// median returns the median duration of an operation's successful calls, or 0 if there are none.
func (c *checker) median(op flexvolume.Operation) time.Duration {
	var durations []time.Duration
	for _, outcome := range c.calls {
		if outcome.Operation == op && outcome.Err == nil {
			durations = append(durations, outcome.Duration)
		}
	}
	return median(durations)
}

func median(durations []time.Duration) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(durations))[len(durations)/2]
}

// leftovers reports and removes the files and mounts that remain after all volumes have been
// unmounted and detached.
func (c *checker) leftovers(context.Context) {
	mounts, err := c.sandbox.mounts()
	if err == nil && len(mounts) > 0 {
		err = fmt.Errorf("%d mounts remain: %s", len(mounts), strings.Join(mounts, ", "))
	}
	c.check("leftover-mounts", err, Risk, "no mount remains", "unmount everything that mount and mountdevice have mounted")

	var failure error
	if !settle(func() bool { return len(c.sandbox.newDevices()) == 0 }) {
		failure = fmt.Errorf("loop devices remain: %s", strings.Join(c.sandbox.newDevices(), ", "))
	}
	c.check("leftover-devices", failure, Risk, "no loop device remains", "detach loop devices in unmount or detach (losetup --detach), or let umount do it (mount -o loop)")

	failure = nil
	if !settle(func() bool { return len(c.sandbox.processes()) == 0 }) {
		remaining := slices.Sorted(maps.Values(c.sandbox.processes()))
		failure = fmt.Errorf("processes remain: %q", remaining)
	}
	c.check("leftover-processes", failure, Risk, "no process remains", "in unmount, end the processes that mount started")

	failure = nil
	if remaining := c.sandbox.files(c.Driver); len(remaining) > 0 {
		failure = fmt.Errorf("files remain in the kubelet's directories: %s", strings.Join(remaining, ", "))
	}
	c.check("leftover-files", failure, Risk, "no file remains in the kubelet's directories", "remove the files that mount wrote: otherwise, the kubelet cannot remove the pod")
	if err := c.sandbox.clear(); err != nil {
		c.result("leftover-cleared", Risk, "the check could not remove everything that the driver left: "+err.Error(), "remove it manually")
	}
}
