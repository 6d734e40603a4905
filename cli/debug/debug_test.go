package debug

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	imagev1 "github.com/openshift/api/image/v1"
	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubectl/pkg/util/interrupt"
	"k8s.io/utils/exec"
	"sigs.k8s.io/yaml"
)

// source returns an object of the given kind. A pod, and the pod template of a controller, have the
// same spec.
func source(t *testing.T, kind string) runtime.Object {
	t.Helper()
	pod := `
metadata: {annotations: {note: kept}, labels: {app: web}}
spec:
  nodeName: one
  initContainers: [{name: prepare, image: web}]
  containers:
  - {name: web, image: web, command: [serve], args: [--fast], env: [{name: A, value: old}, {name: B, value: old}],
     livenessProbe: {exec: {command: [a]}}, startupProbe: {exec: {command: [a]}}, readinessProbe: {exec: {command: [a]}}}
  - {name: side, image: side, livenessProbe: {exec: {command: [a]}}}
`
	template := corev1.PodTemplateSpec{}
	if err := yaml.Unmarshal([]byte(pod), &template); err != nil {
		t.Fatal(err)
	}
	switch meta := (metav1.ObjectMeta{Namespace: "shop", Name: "web"}); kind {
	case "pods":
		template.Namespace, template.Name = meta.Namespace, meta.Name
		return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	case "nodes":
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one.example.com"}}
	case "services":
		return &corev1.Service{ObjectMeta: meta}
	default:
		return &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Template: &template}}
	}
}

// summary returns the pod properties that `oc debug` changes, as one line of text.
func summary(pod *corev1.Pod) string {
	text := fmt.Sprintf("%s node=%s labels=%d note=%s", pod.Spec.RestartPolicy, pod.Spec.NodeName, len(pod.Labels), pod.Annotations["note"])
	for _, c := range pod.Spec.InitContainers {
		text += " init:" + c.Name
	}
	for _, c := range pod.Spec.Containers {
		text += fmt.Sprintf("; %s=%s %q %q", c.Name, c.Image, c.Command, c.Args)
		for _, e := range c.Env {
			text += " " + e.Name + "=" + e.Value
		}
		if c.LivenessProbe != nil && c.StartupProbe != nil {
			text += " live"
		}
		if c.ReadinessProbe != nil {
			text += " ready"
		}
		if s := c.SecurityContext; s != nil {
			if s.RunAsUser != nil {
				text += fmt.Sprintf(" user=%d", *s.RunAsUser)
			}
			if s.RunAsNonRoot != nil {
				text += fmt.Sprintf(" notroot=%t", *s.RunAsNonRoot)
			}
		}
		if c.TTY || c.Stdin {
			text += fmt.Sprintf(" tty=%t stdin=%t", c.TTY, c.StdinOnce)
		}
	}
	return text
}

func TestDebugCopiesPod(t *testing.T) {
	yes, no := true, false
	const side = `; side=side [] []`
	for _, c := range []struct {
		kind    string
		options options
		want    string
	}{
		{"pods", options{user: -1, keepInitContainers: true, terminal: true, input: true}, `Never node= labels=0 note= init:prepare; web=web ["sh"] [] A=old B=old tty=true stdin=true` + side},
		{"replicationcontrollers", options{user: -1, keepAnnotations: true, keepLiveness: true, keepReadiness: true, nodeName: "two"},
			`Never node=two labels=0 note=kept; web=web ["sh"] [] A=old B=old live ready` + side},
		{"pods", options{user: -1, keepAnnotations: true, oneContainer: true, container: "side", image: "tools"}, `Never node= labels=0 note=kept; side=tools ["sh"] []`},
		{"pods", options{user: -1, root: &yes, oneContainer: true, environment: []string{"A=new=1", "B-", "C="}}, `Never node= labels=0 note=; web=web ["sh"] [] A=new=1 C= user=0 notroot=false`},
		{"pods", options{user: -1, root: &no, oneContainer: true}, `Never node= labels=0 note=; web=web ["sh"] [] A=old B=old notroot=true`},
		{"pods", options{user: 77, oneContainer: true}, `Never node= labels=0 note=; web=web ["sh"] [] A=old B=old user=77 notroot=false`},
		{"nodes", options{user: -1, image: "tools"}, `Never node=one.example.com labels=0 note=; container-00=tools ["sh"] [] user=0`},
	} {
		c.options.command = []string{"sh"}
		pod, original, err := c.options.of(source(t, c.kind), c.kind)
		if err != nil {
			t.Errorf("%+v: %v", c.options, err)
			continue
		}
		if diff := cmp.Diff(c.want, summary(pod)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.kind, diff)
		}
		if c.kind == "pods" && c.options.container == "" && (original != "serve --fast" || pod.Annotations[sourceResource] != "pods/web" || pod.Annotations[sourceContainer] != "web" || !strings.HasPrefix(pod.Name, "web-debug-")) {
			t.Errorf("command %q replaced in pod %q: %v", original, pod.Name, pod.Annotations)
		}
	}
	for want, c := range map[string]struct {
		kind    string
		options options
	}{
		"only web, side": {"pods", options{container: "x"}}, "--image": {"nodes", options{}}, "it is not a pod": {"services", options{}}, `parse "A"`: {"pods", options{environment: []string{"A"}}},
	} {
		if _, _, err := c.options.of(source(t, c.kind), c.kind); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestDebugPodIsRemovedWhenCommandEnds uses a fake cluster in which each pod immediately has the
// state that the test case specifies.
func TestDebugPodIsRemovedWhenCommandEnds(t *testing.T) {
	finished := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	for name, c := range map[string]struct {
		state    corev1.ContainerState
		input    bool
		says     string
		problem  string
		exitCode int
	}{
		"succeeds":         {state: finished(0), says: "fake logs"},
		"fails":            {state: finished(3), says: "fake logs", problem: "exit code 3", exitCode: 3},
		"has no image":     {state: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}, problem: "no such image"},
		"is a shell":       {state: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, input: true, says: "attached"},
		"is removed":       {state: finished(0), input: true, problem: "it was removed"},
		"ends immediately": {state: finished(0), input: true, says: "fake logs"},
	} {
		clients := fake.NewClientset()
		clients.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: c.state}}
			return name == "is removed", pod, nil
		})
		var out, errOut strings.Builder
		d := &debugging{clients: clients, timeout: time.Minute, IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, options: options{input: c.input}}
		d.attach = func(*corev1.Pod, string, *interrupt.Handler) error { out.WriteString("attached"); return nil }
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-debug", Annotations: map[string]string{sourceContainer: "web"}}}
		err := d.run(t.Context(), pod, "serve")
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if !strings.Contains(problem, c.problem) || (problem == "") != (c.problem == "") || out.String() != c.says {
			t.Errorf("%s: prints %q, %v", name, out.String(), err)
		}
		var exit exec.CodeExitError
		if errors.As(err, &exit) != (c.exitCode != 0) || exit.Code != c.exitCode {
			t.Errorf("%s: fails with %v", name, err)
		}
		if remaining, err := clients.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{}); err != nil || len(remaining.Items) != 0 {
			t.Errorf("%s: remaining %v, %v", name, remaining, err)
		}
	}
}

func TestDebugOfImageStreamTagUsesItsImage(t *testing.T) {
	tag := &imagev1.ImageStreamTag{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web:v1.2"}, Image: imagev1.Image{DockerImageReference: "registry.example.com/web@sha256:1"}}
	w := &options{command: []string{"sh"}, user: -1}
	pod, original, err := w.of(tag, "imagestreamtags")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(pod.Name, "web-v1-2-debug-") || pod.Namespace != "shop" || pod.Spec.Containers[0].Image != tag.Image.DockerImageReference || original != "<image entrypoint>" {
		t.Errorf("created %+v instead of %q", pod, original)
	}
	if _, _, err := w.of(&imagev1.ImageStreamTag{}, "imagestreamtags"); err == nil || !strings.Contains(err.Error(), "no image yet") {
		t.Errorf("a tag without an image: %v", err)
	}
}

// TestDebugGivesNoRightsToAuthorOfPod debugs pods that other users created.
func TestDebugGivesNoRightsToAuthorOfPod(t *testing.T) {
	for name, c := range map[string]struct {
		allowedBy    *corev1.ObjectReference
		err          error
		withMyRights bool
		refused      bool
	}{
		"the account may run the pods":     {allowedBy: &corev1.ObjectReference{Name: "restricted"}},
		"the account may not run the pods": {refused: true},
		"--with-my-rights":                 {withMyRights: true},
		"the user may not create reviews":  {err: apierrors.NewForbidden(securityv1.Resource("podsecuritypolicysubjectreviews"), "", nil)},
		"the server has no such reviews":   {err: apierrors.NewNotFound(securityv1.Resource("podsecuritypolicysubjectreviews"), "")},
		"the review fails":                 {err: errors.New("connection refused"), refused: true},
	} {
		d := &debugging{withMyRights: c.withMyRights, options: options{user: -1, command: []string{"sh"}}}
		d.review = func(_ context.Context, namespace string, review *securityv1.PodSecurityPolicySubjectReview) (*securityv1.PodSecurityPolicySubjectReview, error) {
			spec := review.Spec
			if namespace != "shop" || spec.User != "system:serviceaccount:shop:default" || len(spec.Template.Spec.InitContainers) != 1 || !slices.Contains(spec.Groups, "system:authenticated") {
				t.Errorf("%s: reviews %+v", name, spec)
			}
			review.Status.AllowedBy = c.allowedBy
			return review, c.err
		}
		if _, _, err := d.of(source(t, "replicationcontrollers"), "replicationcontrollers"); err != nil {
			t.Fatal(err)
		}
		if err := d.checkAccount(t.Context(), "shop"); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
