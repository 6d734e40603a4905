package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
)

// errUnfinished means that an operation failed or did not finish.
var errUnfinished = errors.New("the operation did not succeed")

// checkLifecycle creates an instance, updates and binds it, and deletes the binding and the
// instance. After a failure, it deletes the objects that it created.
func (c *checker) checkLifecycle(ctx context.Context) error {
	s, p, err := c.find(c.Service, c.Plan)
	if err != nil {
		return err
	}
	instance := "/v2/service_instances/" + uuid.NewString()
	order := map[string]any{
		"service_id": s.ID, "plan_id": p.ID, "context": c.Context, "organization_guid": "check", "space_guid": "check", "parameters": c.Parameters,
	}
	if err := c.checkSynchronous(ctx, order, s, p); err != nil {
		return err
	}
	defer func() { _, _ = c.send(context.WithoutCancel(ctx), http.MethodDelete, instance+query(s, p), nil, nil) }()
	if err := c.create(ctx, "instance", instance, order, s, p); err != nil {
		return err
	}
	other := with(order, "parameters", map[string]any{"conformance-check": uuid.NewString()})
	got, err := c.send(ctx, http.MethodPut, instance+"?accepts_incomplete=true", other, nil)
	if err != nil {
		return err
	}
	c.expect("A provision request for an existing instance with other parameters gets 409, or 400 if they are not valid", got, http.StatusConflict, http.StatusBadRequest)
	if err := c.retrieve(ctx, "instance", instance, s.Instances, s, p); err != nil {
		return err
	}
	if p, err = c.checkUpdate(ctx, instance, s, p); err != nil {
		return err
	}
	if s.bindable(p) {
		if err := c.checkBinding(ctx, instance, s, p); err != nil {
			return err
		}
	}
	return c.remove(ctx, "instance", instance, s, p)
}

// checkSynchronous requests an instance in the same way as a platform that does not support
// asynchronous operations. If the broker creates the instance, checkSynchronous deletes it.
func (c *checker) checkSynchronous(ctx context.Context, order map[string]any, s service, p plan) error {
	instance := "/v2/service_instances/" + uuid.NewString()
	got, err := c.send(ctx, http.MethodPut, instance, order, nil)
	if err != nil {
		return err
	}
	c.expect("PUT without accepts_incomplete gets 201, or 422 if it is asynchronous", got, http.StatusCreated, http.StatusUnprocessableEntity)
	switch got.code {
	case http.StatusUnprocessableEntity:
		c.expectError("An asynchronous PUT without accepts_incomplete gets the error AsyncRequired", got, "AsyncRequired")
	case http.StatusCreated, http.StatusAccepted:
		return c.remove(ctx, "instance", instance, s, p)
	}
	return nil
}

func (c *checker) checkBinding(ctx context.Context, instance string, s service, p plan) error {
	binding := instance + "/service_bindings/" + uuid.NewString()
	body := map[string]any{"service_id": s.ID, "plan_id": p.ID, "context": c.Context}
	if err := c.create(ctx, "binding", binding, body, s, p); err != nil {
		return err
	}
	if err := c.retrieve(ctx, "binding", binding, s.Bindings, s, p); err != nil {
		return err
	}
	return c.remove(ctx, "binding", binding, s, p)
}

// create creates an instance or a binding, and then checks the response to an identical second
// request.
func (c *checker) create(ctx context.Context, kind, path string, body map[string]any, s service, p plan) error {
	got, err := c.send(ctx, http.MethodPut, path+"?accepts_incomplete=true", body, nil)
	if err != nil {
		return err
	}
	c.expect("PUT of a new "+kind+" gets 201, or 202 if it is asynchronous", got, http.StatusCreated, http.StatusAccepted)
	switch got.code {
	case http.StatusCreated, http.StatusOK:
	case http.StatusAccepted:
		again, err := c.send(ctx, http.MethodPut, path+"?accepts_incomplete=true", body, nil)
		if err != nil {
			return err
		}
		c.expect("The same PUT while the "+kind+" is created gets 202, or 200 if it exists now", again, http.StatusAccepted, http.StatusOK)
		if kind == "instance" {
			if err := c.checkBusy(ctx, path, body, s, p); err != nil {
				return err
			}
		}
		if err := c.poll(ctx, kind, path, got.text("operation"), false, s, p); err != nil {
			return err
		}
	default:
		return fmt.Errorf("create %s: %w: %s", kind, errUnfinished, got.description())
	}
	again, err := c.send(ctx, http.MethodPut, path+"?accepts_incomplete=true", body, nil)
	if err != nil {
		return err
	}
	c.expect("The same PUT of an existing "+kind+" gets 200", again, http.StatusOK)
	return nil
}

// retrieve requests an instance or a binding. If instances or bindings are not retrievable, it
// checks no rules.
func (c *checker) retrieve(ctx context.Context, kind, path string, retrievable bool, s service, p plan) error {
	if !retrievable {
		return nil
	}
	got, err := c.send(ctx, http.MethodGet, path+query(s, p), nil, nil)
	if err != nil {
		return err
	}
	c.expect("GET of a retrievable "+kind+" gets 200", got, http.StatusOK)
	return nil
}

// remove deletes an instance or a binding, and then checks the response to an identical second
// request.
func (c *checker) remove(ctx context.Context, kind, path string, s service, p plan) error {
	got, err := c.send(ctx, http.MethodDelete, path+query(s, p), nil, nil)
	if err != nil {
		return err
	}
	c.expect("DELETE of a "+kind+" gets 200, or 202 if it is asynchronous", got, http.StatusOK, http.StatusAccepted)
	switch got.code {
	case http.StatusOK:
	case http.StatusAccepted:
		if err := c.poll(ctx, kind, path, got.text("operation"), true, s, p); err != nil {
			return err
		}
	default:
		return fmt.Errorf("delete %s: %w: %s", kind, errUnfinished, got.description())
	}
	again, err := c.send(ctx, http.MethodDelete, path+query(s, p), nil, nil)
	if err != nil {
		return err
	}
	c.expect("DELETE of a deleted "+kind+" gets 410", again, http.StatusGone)
	return nil
}

// poll waits until an operation succeeds. If deletes is true, it also accepts status 410 as
// success.
func (c *checker) poll(ctx context.Context, kind, path, operation string, deletes bool, s service, p plan) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	values := url.Values{"service_id": {s.ID}, "plan_id": {p.ID}}
	if operation != "" {
		values.Set("operation", operation)
	}
	for {
		got, err := c.send(ctx, http.MethodGet, path+"/last_operation?"+values.Encode(), nil, nil)
		state := got.text("state")
		switch {
		case err != nil:
			return fmt.Errorf("poll operation of %s: %w", kind, err)
		case deletes && got.code == http.StatusGone, got.code == http.StatusOK && state == "succeeded":
			c.rule("last_operation gets 200 with a valid state, or 410 for a deleted object")
			return nil
		case got.code != http.StatusOK || state != "in progress":
			c.rule("last_operation gets 200 with a valid state, or 410 for a deleted object",
				fmt.Sprintf("the status for a %s is %d, and the state is %q", kind, got.code, state))
			return fmt.Errorf("poll operation of %s: %w: %s", kind, errUnfinished, got.description())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("poll operation of %s: %w", kind, ctx.Err())
		case <-time.After(max(c.Interval, got.retryAfter)):
		}
	}
}
