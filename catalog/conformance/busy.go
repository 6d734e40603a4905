package conformance

import (
	"context"
	"net/http"

	"github.com/google/uuid"
)

// checkBusy sends requests for an instance while the broker is creating it. Because the creation
// can finish at any time, each rule also accepts the response for an existing instance. None of the
// requests changes the instance.
func (c *checker) checkBusy(ctx context.Context, instance string, order map[string]any, s service, p plan) error {
	change := map[string]any{"service_id": s.ID, "context": c.Context, "previous_values": map[string]any{"service_id": s.ID, "plan_id": p.ID}}
	for _, tt := range []struct {
		rule, method, query string
		body                map[string]any
		applies             bool
		codes               []int
	}{
		{
			"A provision request with other parameters while the instance is created gets 409, or 400 if they are not valid", http.MethodPut, "?accepts_incomplete=true",
			with(order, "parameters", map[string]any{"conformance-check": uuid.NewString()}), true, []int{http.StatusConflict, http.StatusBadRequest},
		},
		{
			"GET of an instance while it is created gets 404, or 200 if it exists now", http.MethodGet, query(s, p),
			nil, s.Instances, []int{http.StatusNotFound, http.StatusOK},
		},
		{
			"PATCH of an instance while it is created gets 422, or 200 or 202 if it is possible", http.MethodPatch, "?accepts_incomplete=true",
			change, s.updateable(p), []int{http.StatusUnprocessableEntity, http.StatusOK, http.StatusAccepted},
		},
	} {
		if !tt.applies {
			continue
		}
		got, err := c.send(ctx, tt.method, instance+tt.query, tt.body, nil)
		if err != nil {
			return err
		}
		c.expect(tt.rule, got, tt.codes...)
		if tt.method == http.MethodPatch && got.code == http.StatusUnprocessableEntity {
			c.expectError("A request that must wait for another operation gets the error ConcurrencyError", got, "ConcurrencyError")
		}
	}
	return nil
}
