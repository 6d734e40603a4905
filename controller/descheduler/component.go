package descheduler

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-platform/slipway/controller"
)

// Component periodically applies a descheduler policy.
type Component struct {
	Deps *controller.Deps
	// PolicyFile is the path to the policy file. Each pass reads the file, so changes take effect
	// in the next pass.
	PolicyFile string
	// Interval is the delay before the first pass and between two passes.
	Interval time.Duration
	// DryRun makes the component log the pods that the policy would evict, without evicting them.
	DryRun bool

	note func(text string)
}

// Name returns the component's name.
func (c *Component) Name() string { return "descheduler" }

// Notes sets the function that the component calls with the reason why the last pass failed.
func (c *Component) Notes(note func(text string)) { c.note = note }

// Run deschedules pods until ctx is done. If a pass fails, Run logs the error, passes it to the
// function that Notes has set, and tries again in the next pass.
func (c *Component) Run(ctx context.Context, ready func()) error {
	recorder, shutdown := controller.Recorder(ctx, c.Deps.Kube, scheme.Scheme, c.Name())
	defer shutdown()
	ready()
	report := func(eviction Eviction) {
		pod := eviction.Pod.Namespace + "/" + eviction.Pod.Name
		slog.InfoContext(ctx, "selected pod for eviction", "component", c.Name(), "pod", pod, "node", eviction.Pod.Spec.NodeName,
			"strategy", eviction.Strategy, "reason", eviction.Failure, "dryRun", c.DryRun)
		if eviction.Failure == "" && !c.DryRun {
			recorder.Eventf(eviction.Pod, corev1.EventTypeNormal, "Descheduled", "Evicted from node %s by strategy %s of the descheduler",
				eviction.Pod.Spec.NodeName, eviction.Strategy)
		}
	}
	last := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.Interval):
		}
		err := c.pass(ctx, report)
		if ctx.Err() != nil {
			return nil
		}
		text := ""
		if err != nil && !errors.Is(err, ErrFewNodes) {
			text = err.Error()
		}
		if text != last {
			c.note(text)
		}
		if text != last && text != "" {
			slog.WarnContext(ctx, "cannot deschedule pods", "component", c.Name(), "error", err)
		}
		last = text
	}
}

func (c *Component) pass(ctx context.Context, report func(Eviction)) error {
	policy, err := ReadPolicy(c.PolicyFile)
	if err != nil {
		return err
	}
	return (&Descheduler{Client: c.Deps.Kube, Policy: policy, DryRun: c.DryRun, Report: report}).Deschedule(ctx)
}
