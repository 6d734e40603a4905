package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// output judges what was printed, and how the driver ended, in all calls so far.
func (c *checker) output(context.Context) {
	faults := map[string]error{}
	note := func(check string, outcome flexvolume.Outcome, format string, args ...any) {
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
			note("output-deadline", outcome, "%s", outcome.Err)
			continue
		case flexvolume.KindWrongType, flexvolume.KindSize, flexvolume.KindStatus:
			note("output-fields", outcome, "%s", outcome.Err)
		}
		if !oneObject(outcome.Stdout) {
			note("output-json", outcome, "standard output is %q and standard error %q", shorten(outcome.Stdout), shorten(outcome.Stderr))
			continue
		}
		if strings.TrimSpace(outcome.Stderr) != "" {
			note("output-noise", outcome, "standard error is %q", shorten(outcome.Stderr))
		}
		switch {
		case outcome.Status == "":
		case (outcome.Status == "Success") != (outcome.ExitCode == 0):
			note("output-exit", outcome, "it answers %q and exits with %d", outcome.Status, outcome.ExitCode)
		case outcome.ExitCode > 1:
			note("output-exit-one", outcome, "it answers %q and exits with %d", outcome.Status, outcome.ExitCode)
		}
	}
	for _, one := range []struct {
		check   string
		verdict Verdict
		did, do string
	}{
		{"output-json", Wrong, "each call prints one JSON object to standard output and nothing else",
			"print the answer, once, to standard output, and let no other command print there"},
		{"output-fields", Wrong, "the fields have the types of the interface",
			`use "Success", "Failure" or "Not supported", with this case; true and false without quotes; sizes as numbers of bytes`},
		{"output-noise", Risk, "it prints nothing to standard error",
			"print nothing to standard error beside an answer: Slipway leaves it aside, Kubernetes takes it for a part of the answer; log to a file or with logger"},
		{"output-exit", Wrong, "exit code 0 goes with Success alone", "exit with 0 for Success and with 1 for everything else"},
		{"output-exit-one", Risk, "other answers go with exit code 1", "exit with 1"},
		{"output-deadline", Wrong, "each call ends", "give up, with Failure, before the deadline: see that no command waits for ever, such as one for a server that is gone"},
	} {
		c.judge(one.check, faults[one.check], one.verdict, one.did, one.do)
	}
}

// oneObject says whether a text is one JSON object and nothing else.
func oneObject(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "{") && json.Valid([]byte(text))
}

func shorten(text string) string {
	const most = 200
	text = strings.TrimSpace(text)
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Operations that others wait for: kubelet and the controller do little else meanwhile.
const (
	soon = 2 * time.Second
	late = 20 * time.Second
)

// time judges how long calls took.
func (c *checker) time(context.Context) {
	durations := map[flexvolume.Operation][]time.Duration{}
	for _, outcome := range c.calls {
		if !outcome.Killed {
			durations[outcome.Operation] = append(durations[outcome.Operation], outcome.Duration)
		}
	}
	var problems []error
	for _, op := range slices.Concat(flexvolume.Operations(), []flexvolume.Operation{noSuchOperation}) {
		all := durations[op]
		if len(all) == 0 {
			continue
		}
		timing := Timing{Operation: op, Calls: len(all), Median: median(all), Max: slices.Max(all)}
		c.report.Timings = append(c.report.Timings, timing)
		limit := late
		if op == flexvolume.OpInit || op == flexvolume.OpGetVolumeName || op == flexvolume.OpIsAttached || op == noSuchOperation {
			limit = soon
		}
		if timing.Max > limit {
			problems = append(problems, fmt.Errorf("%s takes up to %.1f s", op, timing.Max.Seconds()))
		}
	}
	c.judge("time", errors.Join(problems...), Risk, fmt.Sprintf("%d calls, none of them slow", len(c.calls)),
		"do in init, getvolumename and isattached only what takes no time, and let the others wait for nothing that need not be")
}

// median is the usual duration of an operation's successful calls, or 0.
func (c *checker) median(op flexvolume.Operation) time.Duration {
	var all []time.Duration
	for _, outcome := range c.calls {
		if outcome.Operation == op && outcome.Err == nil {
			all = append(all, outcome.Duration)
		}
	}
	return median(all)
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

// leftovers looks for what is left of volumes that were all unmounted and detached, and removes it.
func (c *checker) leftovers(context.Context) {
	mounts, err := c.box.mounts()
	if err == nil && len(mounts) > 0 {
		err = fmt.Errorf("%d mounts are left: %s", len(mounts), strings.Join(mounts, ", "))
	}
	c.judge("leftover-mounts", err, Wrong, "no mount is left", "unmount everything that mount and mountdevice have mounted")

	var problem error
	if !settle(func() bool { return len(c.box.newDevices()) == 0 }) {
		problem = fmt.Errorf("loop devices are left: %s", strings.Join(c.box.newDevices(), ", "))
	}
	c.judge("leftover-devices", problem, Wrong, "no loop device is left", "free loop devices in unmount or detach (losetup --detach), or let umount do it (mount -o loop)")

	problem = nil
	if !settle(func() bool { return len(c.box.processes()) == 0 }) {
		left := slices.Sorted(maps.Values(c.box.processes()))
		problem = fmt.Errorf("processes are left: %q", left)
	}
	c.judge("leftover-processes", problem, Wrong, "no process is left", "end in unmount what mount has started")

	problem = nil
	if left := c.box.files(c.Driver); len(left) > 0 {
		problem = fmt.Errorf("files are left in kubelet's directories: %s", strings.Join(left, ", "))
	}
	c.judge("leftover-files", problem, Wrong, "no file is left in kubelet's directories", "remove what mount has written: kubelet cannot remove the pod otherwise")
	if err := c.box.clear(); err != nil {
		c.result("leftover-cleared", Risk, "not everything that is left could be removed: "+err.Error(), "remove it by hand")
	}
}
