package conformance

import (
	"context"
	"maps"
	"net/http"
	"net/url"

	"github.com/google/uuid"
)

// checkHeaders sends requests with invalid headers.
func (c *checker) checkHeaders(ctx context.Context) error {
	for _, tt := range []struct {
		rule   string
		change func(*http.Request)
		code   int
	}{
		{"A request with a wrong token gets 401", func(r *http.Request) { r.Header.Set("Authorization", "Bearer wrong") }, http.StatusUnauthorized},
		{"A request without credentials gets 401", func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		{"A request for another major version gets 412", func(r *http.Request) { r.Header.Set(versionHeader, "1.0") }, http.StatusPreconditionFailed},
		{"A request without a version gets 412", func(r *http.Request) { r.Header.Del(versionHeader) }, http.StatusPreconditionFailed},
	} {
		got, err := c.send(ctx, http.MethodGet, "/v2/catalog", nil, tt.change)
		if err != nil {
			return err
		}
		c.expect(tt.rule, got, tt.code)
	}
	return nil
}

// query returns the URL query of a request for a plan of a service.
func query(s service, p plan) string {
	return "?" + url.Values{"service_id": {s.ID}, "plan_id": {p.ID}, "accepts_incomplete": {"true"}}.Encode()
}

// checkUnknown sends requests for an instance that does not exist.
func (c *checker) checkUnknown(ctx context.Context) error {
	s := c.catalog.Services[0]
	p := s.Plans[0]
	instance := "/v2/service_instances/" + uuid.NewString()
	for _, tt := range []struct {
		rule, method, path string
		codes              []int
	}{
		{"DELETE of an instance that does not exist gets 410", http.MethodDelete, instance, []int{http.StatusGone}},
		{
			"DELETE of a binding that does not exist gets 410", http.MethodDelete, instance + "/service_bindings/" + uuid.NewString(),
			[]int{http.StatusGone},
		},
		{
			"The last operation of an instance that does not exist gets 400, 404 or 410", http.MethodGet, instance + "/last_operation",
			[]int{http.StatusBadRequest, http.StatusNotFound, http.StatusGone},
		},
	} {
		got, err := c.send(ctx, tt.method, tt.path+query(s, p), nil, nil)
		if err != nil {
			return err
		}
		c.expect(tt.rule, got, tt.codes...)
	}
	return nil
}

// checkInvalid sends provisioning requests with invalid bodies.
func (c *checker) checkInvalid(ctx context.Context) error {
	s := c.catalog.Services[0]
	valid := map[string]any{
		"service_id": s.ID, "plan_id": s.Plans[0].ID, "context": c.Context, "organization_guid": "check", "space_guid": "check",
	}
	for _, tt := range []struct {
		rule string
		body any
	}{
		{"A provision request without service_id gets 400", without(valid, "service_id")},
		{"A provision request without plan_id gets 400", without(valid, "plan_id")},
		{"A provision request for an unknown service gets 400", with(valid, "service_id", uuid.NewString())},
		{"A provision request for an unknown plan gets 400", with(valid, "plan_id", uuid.NewString())},
		{"A provision request that is not JSON gets 400", "{"},
	} {
		got, err := c.send(ctx, http.MethodPut, "/v2/service_instances/"+uuid.NewString()+"?accepts_incomplete=true", tt.body, nil)
		if err != nil {
			return err
		}
		c.expect(tt.rule, got, http.StatusBadRequest)
		if got.body == nil {
			c.rule("The body of an error is a JSON object", "the body of "+tt.rule+" is not")
		}
	}
	c.rule("The body of an error is a JSON object")
	return nil
}

// without returns a copy of a body without the given field.
func without(body map[string]any, field string) map[string]any {
	changed := maps.Clone(body)
	delete(changed, field)
	return changed
}

// with returns a copy of a body with a different value for a field.
func with(body map[string]any, field string, value any) map[string]any {
	changed := maps.Clone(body)
	changed[field] = value
	return changed
}
