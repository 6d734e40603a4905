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

// initialize checks that init succeeds and can be repeated, and that its response is valid.
func (c *checker) initialize(ctx context.Context) {
	resp := c.call(ctx, flexvolume.Trial{Operation: flexvolume.OpInit})
	if resp.Err != nil {
		c.result("init", Wrong, resp.Err.Error(), `return {"status":"Success","capabilities":{"attach":true}} or false; a driver whose init fails is not used`)
		return
	}
	c.usable, c.caps, c.report.Capabilities = true, resp.Capabilities, resp.Capabilities
	mode := "it supports only mount and unmount"
	if c.caps.Attach {
		mode = "it is attachable"
	}
	c.result("init", OK, mode, "")

	repeated := c.call(ctx, flexvolume.Trial{Operation: flexvolume.OpInit})
	switch {
	case repeated.Err != nil:
		c.result("init-repeated", Wrong, repeated.Err.Error(), "let init succeed when repeated: it is called at each start and each update")
	case repeated.Capabilities != resp.Capabilities:
		c.result("init-repeated", Risk, fmt.Sprintf("it returns %s, then %s", resp.Capabilities, repeated.Capabilities), "always return the same response to init")
	default:
		c.result("init-repeated", OK, "it succeeds again", "")
	}
	c.capabilities(resp)
}

// capabilities checks the capability names in the response to init.
func (c *checker) capabilities(outcome flexvolume.TrialResult) {
	const knownNames = "attach, selinuxRelabel, supportsMetrics, fsGroup and requiresFSResize"
	var fields map[string]json.RawMessage
	_ = json.Unmarshal([]byte(strings.TrimSpace(outcome.Stdout)), &fields)
	var capabilities map[string]json.RawMessage
	for key, value := range fields {
		if strings.EqualFold(key, "capabilities") {
			_ = json.Unmarshal(value, &capabilities)
		}
	}
	var unknown []string
	hasAttach := false
	for key := range capabilities {
		lower := strings.ToLower(key)
		hasAttach = hasAttach || lower == "attach"
		if !slices.Contains([]string{"attach", "selinuxrelabel", "supportsmetrics", "fsgroup", "requiresfsresize"}, lower) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	switch {
	case len(unknown) > 0:
		c.result("capabilities", Risk, fmt.Sprintf("it returns unknown capabilities: %q", unknown), "the valid names are "+knownNames)
	case !hasAttach:
		c.result("capabilities", Risk, "it does not return whether it is attachable, which defaults to true",
			`return "capabilities":{"attach":true} from init, or false for a driver that supports only mount and unmount`)
	default:
		c.result("capabilities", OK, outcome.Capabilities.String(), "")
	}
}

// noSuchOperation is an operation that does not exist.
const noSuchOperation flexvolume.Operation = "slipway-no-such-operation"

// unsupported checks the response to operations that the driver does not support.
func (c *checker) unsupported(ctx context.Context) {
	const remedy = `return {"status":"Not supported"} and exit with 1 for every unsupported operation, including future ones`
	unknown := c.call(ctx, flexvolume.Trial{Operation: noSuchOperation, Args: []string{"{}"}})
	c.check("lacks-unknown", checkNotSupported(unknown), Risk, `it returns "Not supported" for an operation that does not exist`, remedy)
	if c.caps.Attach {
		return
	}
	// Kubernetes does not call these operations if a driver does not support attach. Both
	// operations only read, so calling them is safe.
	l := c.newLifecycle(nil)
	for _, op := range []flexvolume.Operation{flexvolume.OpGetVolumeName, flexvolume.OpIsAttached} {
		outcome := l.call(ctx, op, 0)
		if outcome.Err == nil {
			c.result("lacks-"+string(op), OK, "it supports the operation", "")
			continue
		}
		c.check("lacks-"+string(op), checkNotSupported(outcome), Risk, `it returns "Not supported"`, remedy)
	}
}

// checkNotSupported returns an error unless the response is "Not supported" with exit code 1.
func checkNotSupported(outcome flexvolume.TrialResult) error {
	switch {
	case outcome.Err == nil:
		return errors.New("it reports Success")
	case !errors.Is(outcome.Err, flexvolume.ErrNotSupported):
		return outcome.Err
	case outcome.ExitCode != 1:
		return fmt.Errorf(`it returns "Not supported" and exits with %d`, outcome.ExitCode)
	}
	return nil
}
