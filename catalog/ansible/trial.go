package ansible

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// testAction is the bundle action that tests the other actions.
const testAction = "test"

// resultAnnotation is the pod annotation in which a bundle stores the result of a test: a JSON
// object with the keys fail and msg.
const resultAnnotation = "apb_test_result"

// trialInterval is the interval at which a trial checks its pod.
const trialInterval = time.Second

// ErrTestFailed means that the playbook of the test action failed.
var ErrTestFailed = errors.New("the bundle's test failed")

// Trial runs a bundle's test action in a separate project.
type Trial struct {
	Options
	// Config is a client configuration with cluster administrator permissions.
	Config *rest.Config
	// Bundle is the name of the bundle. Plan is the name of the plan. It defaults to the bundle's
	// first plan.
	Bundle, Plan string
	Parameters   map[string]any
	// Output is the writer for the playbook's output.
	Output io.Writer
}

// Run returns nil if the playbook succeeds, and an error that wraps ErrTestFailed if the playbook
// fails. At the end, Run deletes the project, unless an option keeps it.
func (t Trial) Run(ctx context.Context) error {
	b := &broker{options: t.Options, loopback: t.Config}
	var err error
	if b.kube, err = kubernetes.NewForConfig(t.Config); err == nil {
		b.images, err = imageclient.NewForConfig(t.Config)
	}
	t.WhiteList, t.BlackList = []string{""}, nil // the empty pattern matches every name
	if err == nil {
		b.origins, err = origins(t.Options)
	}
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	rec, err := t.record(ctx, b)
	if err != nil {
		return err
	}
	op := rec.Operation
	// Unlike a sandbox, the project has no sandboxLabel. Otherwise, sweep would delete the project,
	// because the broker does not store a record of the trial.
	_, err = b.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: op.Name}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create project %q: %w", op.Name, err)
	}
	err = b.launch(ctx, rec)
	if err == nil {
		err = t.follow(ctx, b, op)
	}
	op.State = succeeded
	if err != nil {
		op.State = failed
	}
	return errors.Join(err, b.clean(context.WithoutCancel(ctx), rec))
}

// record returns a record of the instance that the playbook tests. It does not store the record.
func (t Trial) record(ctx context.Context, b *broker) (*record, error) {
	bundles, _, _, err := b.bundles(ctx)
	if err != nil {
		return nil, err
	}
	for i := range bundles {
		if bundles[i].Spec.Name != t.Bundle {
			continue
		}
		for j := range bundles[i].Spec.Plans {
			plan := &bundles[i].Spec.Plans[j]
			if t.Plan != "" && plan.Name != t.Plan {
				continue
			}
			values, err := complete(plan.Parameters, t.Parameters)
			if err != nil {
				return nil, err
			}
			id := uuid.NewString()
			name := "bundle-test-" + id
			return &record{
				ID: id, Service: bundles[i].id(), Plan: bundles[i].planID(plan.Name), Namespace: name,
				Operation: &operation{Name: name, Action: testAction, Bundle: bundles[i].source(plan), Values: values, User: "system:admin"},
			}, nil
		}
		return nil, fmt.Errorf("bundle %q has no plan %q", t.Bundle, t.Plan)
	}
	return nil, fmt.Errorf("find bundle %q: no image stream of the projects %v contains it", t.Bundle, t.Namespaces)
}

// follow copies the playbook's output, and returns the playbook's result.
func (t Trial) follow(ctx context.Context, b *broker, op *operation) error {
	pods := b.kube.CoreV1().Pods(op.Name)
	var pod *corev1.Pod
	until := func(condition func(*corev1.Pod) bool) error {
		err := wait.PollUntilContextTimeout(ctx, trialInterval, operationLimit*time.Second, true, func(ctx context.Context) (done bool, err error) {
			current, err := pods.Get(ctx, op.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, err
			}
			if err == nil {
				pod = current
			}
			return err == nil && condition(pod), nil
		})
		if err != nil && pod != nil {
			err = fmt.Errorf("%w: the pod is %s %s", err, pod.Status.Phase, waitingReason(pod))
		}
		return err
	}
	if err := until(func(pod *corev1.Pod) bool { return pod.Status.Phase != corev1.PodPending }); err != nil {
		return fmt.Errorf("wait for the start of bundle %q: %w", t.Bundle, err)
	}
	log, err := pods.GetLogs(op.Name, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return fmt.Errorf("read output of bundle %q: %w", t.Bundle, err)
	}
	defer log.Close()
	if _, err := io.Copy(t.Output, log); err != nil {
		return fmt.Errorf("copy output of bundle %q: %w", t.Bundle, err)
	}
	if err := until(ended); err != nil {
		return fmt.Errorf("wait for the end of bundle %q: %w", t.Bundle, err)
	}
	return resultOf(pod)
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// resultOf returns the result of a test. If the playbook calls the asb_save_test_result module, it
// is the result that this module stored. Otherwise, the exit code determines the result.
func resultOf(pod *corev1.Pod) error {
	code := exitCode(pod)
	if code == notImplemented {
		return fmt.Errorf("%w: it has no playbook for this action", ErrTestFailed)
	}
	var result struct {
		Fail bool
		Msg  string
	}
	text := pod.Annotations[resultAnnotation]
	if err := json.Unmarshal([]byte(text), &result); text != "" && err != nil {
		return fmt.Errorf("decode test result: annotation %s: %w", resultAnnotation, err)
	}
	switch {
	case result.Fail:
		return fmt.Errorf("%w: %s", ErrTestFailed, result.Msg)
	case code != 0:
		return fmt.Errorf("%w: exit code %d", ErrTestFailed, code)
	}
	return nil
}
