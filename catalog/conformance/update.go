package conformance

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
)

// checkUpdate changes an instance's plan, and returns the resulting plan. If the service does not
// support plan changes, checkUpdate checks no rules.
func (c *checker) checkUpdate(ctx context.Context, instance string, s service, p plan) (plan, error) {
	if !s.updateable(p) {
		return p, nil
	}
	body := map[string]any{
		"service_id": s.ID, "context": c.Context, "previous_values": map[string]any{"service_id": s.ID, "plan_id": p.ID},
	}
	if err := c.checkInvalidUpdates(ctx, instance, body, p); err != nil {
		return p, err
	}
	target := s.other(p)
	body["plan_id"] = target.ID
	if target.Maintenance != nil {
		body["maintenance_info"] = map[string]any{"version": target.Maintenance.Version}
	}
	got, err := c.send(ctx, http.MethodPatch, instance+"?accepts_incomplete=true", body, nil)
	if err != nil {
		return p, err
	}
	c.expect("PATCH to another plan gets 200, 202 if it is asynchronous, or 422 if it is not possible", got,
		http.StatusOK, http.StatusAccepted, http.StatusUnprocessableEntity)
	switch got.code {
	case http.StatusOK:
	case http.StatusAccepted:
		if err := c.poll(ctx, "changed instance", instance, got.text("operation"), false, s, p); err != nil {
			return p, err
		}
	default:
		return p, nil
	}
	if !s.Instances {
		return target, nil
	}
	if got, err = c.send(ctx, http.MethodGet, instance+query(s, target), nil, nil); err != nil {
		return target, err
	}
	problem := ""
	if id := got.text("plan_id"); id != "" && id != target.ID {
		problem = fmt.Sprintf("it has the plan %q, want %q", id, target.ID)
	}
	c.rule("GET of a changed instance has the new plan", problem)
	return target, nil
}

// checkInvalidUpdates sends invalid update requests, and checks that the broker rejects them.
func (c *checker) checkInvalidUpdates(ctx context.Context, instance string, valid map[string]any, p plan) error {
	for _, tt := range []struct {
		rule    string
		body    any
		codes   []int
		applies bool
	}{
		{"PATCH without service_id gets 400", without(valid, "service_id"), []int{http.StatusBadRequest}, true},
		{"PATCH that is not JSON gets 400", "{", []int{http.StatusBadRequest}, true},
		{
			"PATCH to an unknown plan gets 400 or 422", with(valid, "plan_id", uuid.NewString()),
			[]int{http.StatusBadRequest, http.StatusUnprocessableEntity}, true,
		},
		{
			"PATCH to another version of the plan gets 422", with(valid, "maintenance_info", map[string]any{"version": "0.0.0-" + uuid.NewString()}),
			[]int{http.StatusUnprocessableEntity}, p.Maintenance != nil,
		},
	} {
		if !tt.applies {
			continue
		}
		got, err := c.send(ctx, http.MethodPatch, instance+"?accepts_incomplete=true", tt.body, nil)
		if err != nil {
			return err
		}
		c.expect(tt.rule, got, tt.codes...)
	}
	return nil
}
