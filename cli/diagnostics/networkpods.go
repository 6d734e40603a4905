package diagnostics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// toolsImage is an image with command-line tools that exists on every node.
	toolsImage = "localhost/slipway-tools:current"
	// serverPort is the port on which the pods listen. Their services have the same port.
	serverPort = 8080
	// podsTimeout is the maximum time to wait until the pods are running.
	podsTimeout = time.Minute
	// projectTimeout is the maximum time to wait until pods can be created in a new project.
	projectTimeout = 10 * time.Second
)

// testPod is a pod that the check creates, together with a service of the same name.
type testPod struct {
	project, name, node string
	address, service    string // IP addresses
}

// testNetwork contains the projects and pods of one run of the network check.
type testNetwork struct {
	*environment
	nodes    []corev1.Node // the ready and schedulable nodes
	projects []string
	pods     []*testPod
}

// createProject creates a temporary project with podsPerNode pods on each node.
func (n *testNetwork) createProject(ctx context.Context, podsPerNode int) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "network-diag-", Annotations: map[string]string{
		"openshift.io/node-selector": "", "openshift.io/description": "oc adm diagnostics NetworkCheck deletes this project when it ends.",
	}}}
	namespace, err := n.kubernetes.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create project: %w", err)
	}
	n.projects = append(n.projects, namespace.Name)
	for _, node := range n.nodes {
		for range podsPerNode {
			pod := &testPod{project: namespace.Name, name: fmt.Sprintf("pod-%d", len(n.pods)), node: node.Name}
			if err := n.createPod(ctx, pod); err != nil {
				return err
			}
			n.pods = append(n.pods, pod)
		}
	}
	return nil
}

func (n *testNetwork) createPod(ctx context.Context, p *testPod) error {
	core := n.kubernetes.CoreV1()
	meta := metav1.ObjectMeta{Name: p.name, Labels: map[string]string{"pod": p.name}}
	grace := int64(0)
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		NodeName: p.node, TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{
			Name: "server", Image: toolsImage, ImagePullPolicy: corev1.PullNever,
			Command: []string{"httpd", "-f", "-p", fmt.Sprint(serverPort), "-h", "/tmp"},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
				Exec: &corev1.ExecAction{Command: []string{"nc", "-w", "1", "127.0.0.1", fmt.Sprint(serverPort), "-e", "true"}},
			}},
		}},
	}}
	// Retry, because a new project does not have a service account and a UID range immediately.
	var refusal error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, projectTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := core.Pods(p.project).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			refusal = err
			return false, nil
		}
		refusal = nil
		return true, err
	})
	if err != nil {
		return fmt.Errorf("create pod on node %q: %w", p.node, cmp.Or(refusal, err))
	}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: meta.Labels, Ports: []corev1.ServicePort{{Port: serverPort, TargetPort: intstr.FromInt32(serverPort)}},
	}}
	if service, err = core.Services(p.project).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create service: %w", err)
	}
	p.service = service.Spec.ClusterIP
	return nil
}

// awaitPods waits until the pods are ready. It removes the pods that do not become ready from the
// test network, and returns a problem for each of them.
func (n *testNetwork) awaitPods(ctx context.Context) (problems []problem, err error) {
	var missing map[*testPod]string // the state of each pod that is not ready
	err = wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, podsTimeout, true, func(context.Context) (bool, error) {
		missing = map[*testPod]string{}
		for _, project := range n.projects {
			list, err := n.kubernetes.CoreV1().Pods(project).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			objects := map[string]*corev1.Pod{}
			for i := range list.Items {
				objects[list.Items[i].Name] = &list.Items[i]
			}
			for _, pod := range n.pods {
				object, exists := objects[pod.name]
				switch {
				case pod.project != project:
				case !exists:
					missing[pod] = "deleted"
				case !isReady(object) || object.Status.PodIP == "":
					missing[pod] = string(object.Status.Phase)
				default:
					pod.address = object.Status.PodIP
				}
			}
		}
		return len(missing) == 0, nil
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("wait for pods: %w", err)
	}
	var ready []*testPod
	for _, pod := range n.pods {
		phase, absent := missing[pod]
		if !absent {
			ready = append(ready, pod)
			continue
		}
		problems = append(problems, problem{"pod-start", fmt.Sprintf("a pod on node %s is not ready after %s, but %s", pod.node, podsTimeout, phase)})
	}
	n.pods = ready
	return problems, ctx.Err()
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// isolate creates a network policy that isolates a project's pods.
func (n *testNetwork) isolate(ctx context.Context, project string) error {
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny-all"}, Spec: networkingv1.NetworkPolicySpec{
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
	}}
	if _, err := n.kubernetes.NetworkingV1().NetworkPolicies(project).Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create network policy: %w", err)
	}
	return nil
}

// remove deletes the projects, even after an interrupt.
func (n *testNetwork) remove(ctx context.Context) error {
	var errs []error
	for _, project := range n.projects {
		if err := n.kubernetes.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), project, metav1.DeleteOptions{}); err != nil {
			errs = append(errs, fmt.Errorf("delete project: %w", err))
		}
	}
	return errors.Join(errs...)
}
