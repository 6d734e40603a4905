package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// initialize checks init: that it succeeds, that it may be repeated, and what it says.
func (c *checker) initialize(ctx context.Context) {
	first := c.try(ctx, flexvolume.Trial{Operation: flexvolume.OpInit})
	if first.Err != nil {
		c.result("init", Wrong, first.Err.Error(), `answer {"status":"Success","capabilities":{"attach":true}} or false; no driver is used whose init fails`)
		return
	}
	c.usable, c.caps, c.report.Capabilities = true, first.Capabilities, first.Capabilities
	mode := "it has only mount and unmount"
	if c.caps.Attach {
		mode = "it is attachable"
	}
	c.result("init", OK, mode, "")

	again := c.try(ctx, flexvolume.Trial{Operation: flexvolume.OpInit})
	switch {
	case again.Err != nil:
		c.result("init-repeated", Wrong, again.Err.Error(), "let init be repeated: it is called at each start and each update")
	case again.Capabilities != first.Capabilities:
		c.result("init-repeated", Wrong, fmt.Sprintf("it says %s, then %s", first.Capabilities, again.Capabilities), "answer init always in the same way")
	default:
		c.result("init-repeated", OK, "it succeeds again", "")
	}
	c.capabilities(first)
}

// capabilities looks at the words of the answer to init.
func (c *checker) capabilities(answer flexvolume.Outcome) {
	const known = "attach, selinuxRelabel, supportsMetrics, fsGroup and requiresFSResize"
	var said map[string]json.RawMessage
	_ = json.Unmarshal([]byte(strings.TrimSpace(answer.Stdout)), &said)
	var capabilities map[string]json.RawMessage
	for key, value := range said {
		if strings.EqualFold(key, "capabilities") {
			_ = json.Unmarshal(value, &capabilities)
		}
	}
	var unknown []string
	has := false
	for key := range capabilities {
		lower := strings.ToLower(key)
		has = has || lower == "attach"
		if !slices.Contains([]string{"attach", "selinuxrelabel", "supportsmetrics", "fsgroup", "requiresfsresize"}, lower) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	switch {
	case len(unknown) > 0:
		c.result("capabilities", Risk, fmt.Sprintf("it names capabilities that nobody knows: %q", unknown), "the known ones are "+known)
	case !has:
		c.result("capabilities", Risk, "it does not say whether it is attachable, which counts as true",
			`answer init with "capabilities":{"attach":true}, or false for a driver that has only mount and unmount`)
	default:
		c.result("capabilities", OK, answer.Capabilities.String(), "")
	}
}

// noSuchOperation is an operation that no driver has.
const noSuchOperation flexvolume.Operation = "slipway-no-such-operation"

// lacking checks what is answered to operations that the driver lacks, which it must tolerate.
func (c *checker) lacking(ctx context.Context) {
	const do = `answer {"status":"Not supported"} and exit with 1 to every operation that you do not have, also to those of the future`
	unknown := c.try(ctx, flexvolume.Trial{Operation: noSuchOperation, Args: []string{"{}"}})
	c.judge("lacks-unknown", notSupported(unknown), Wrong, `it answers "Not supported" to an operation that does not exist`, do)
	if c.caps.Attach {
		return
	}
	// A driver without attach is asked nothing of this kind, but says so if it is; both only read.
	l := c.newLife(nil)
	for _, op := range []flexvolume.Operation{flexvolume.OpGetVolumeName, flexvolume.OpIsAttached} {
		outcome := l.call(ctx, op, 0)
		if outcome.Err == nil {
			c.result("lacks-"+string(op), OK, "it has the operation", "")
			continue
		}
		c.judge("lacks-"+string(op), notSupported(outcome), Wrong, `it answers "Not supported"`, do)
	}
}

// notSupported says what is wrong with an answer that should be "Not supported".
func notSupported(outcome flexvolume.Outcome) error {
	switch {
	case outcome.Err == nil:
		return errors.New("it reports Success")
	case !errors.Is(outcome.Err, flexvolume.ErrNotSupported):
		return outcome.Err
	case outcome.ExitCode != 1:
		return fmt.Errorf(`it answers "Not supported" and exits with %d`, outcome.ExitCode)
	}
	return nil
}
