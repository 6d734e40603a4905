package kit

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OC runs `bin/oc` as the administrator in the test's namespace and returns the command's standard
// output. It fails the test if the exit code is not 0.
func (c *Cluster) OC(args ...string) string {
	c.t.Helper()
	return c.ocWithInput("", args...)
}

// TryOC works like OC but for a command that can fail. The error contains the output.
func (c *Cluster) TryOC(args ...string) (string, error) { return c.oc("", args...) }

// Apply applies a manifest.
func (c *Cluster) Apply(manifest string) {
	c.t.Helper()
	c.ocWithInput(manifest, "apply", "-f", "-")
}

// Exec runs a command in the first container of a running pod and returns the command's output.
func (c *Cluster) Exec(pod string, command ...string) string {
	c.t.Helper()
	return c.OC(append([]string{"exec", pod, "--"}, command...)...)
}

// StartOC starts `bin/oc` in the cluster's network and keeps it running until the test ends. It
// returns a reader for the lines of standard output.
func (c *Cluster) StartOC(args ...string) *bufio.Reader {
	c.t.Helper()
	return c.startOC((*exec.Cmd).StdoutPipe, args)
}

// StartOCForErrors works like StartOC, but returns a reader for the lines of standard error.
func (c *Cluster) StartOCForErrors(args ...string) *bufio.Reader {
	c.t.Helper()
	return c.startOC((*exec.Cmd).StderrPipe, args)
}

func (c *Cluster) startOC(pipe func(*exec.Cmd) (io.ReadCloser, error), args []string) *bufio.Reader {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command := c.ocCommand(ctx, args...)
	output, err := pipe(command)
	if err == nil {
		err = c.Do(command.Start)
	}
	if err != nil {
		cancel()
		c.t.Fatalf("start oc %s: %v", strings.Join(args, " "), err)
	}
	c.t.Cleanup(func() {
		cancel()
		_, _ = io.Copy(io.Discard, output)
		_ = command.Wait() // Wait returns an error if cancel killed the command
	})
	return bufio.NewReader(output)
}

// Pod returns a pod in the test's namespace.
func (c *Cluster) Pod(name string) *corev1.Pod {
	c.t.Helper()
	pod, err := c.Client.CoreV1().Pods(c.Namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return pod
}

// OnlyPod waits until exactly one pod matches a selector such as "app=web" and the pod is ready. It
// returns the pod.
func (c *Cluster) OnlyPod(selector string) *corev1.Pod {
	c.t.Helper()
	var pod *corev1.Pod
	c.WaitFor("one ready pod "+selector, func(ctx context.Context) error {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("there are %d", len(pods.Items))
		}
		pod = &pods.Items[0]
		return podReady(pod)
	})
	return pod
}

// WaitPodRunning waits until a pod is running and all of its containers are ready. It returns the
// pod.
func (c *Cluster) WaitPodRunning(name string) *corev1.Pod {
	c.t.Helper()
	var pod *corev1.Pod
	c.WaitFor("running pod "+name, func(ctx context.Context) (err error) {
		pod, err = c.Client.CoreV1().Pods(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return podReady(pod)
	})
	return pod
}

// WaitFetch waits until a pod can fetch a page that contains want from url.
func (c *Cluster) WaitFetch(pod, url, want string) {
	c.t.Helper()
	c.WaitFor(fmt.Sprintf("response of %s to pod %s with %q", url, pod, want), func(context.Context) error {
		page, err := c.TryOC("exec", pod, "--", "timeout", "5", "wget", "-q", "-O", "-", url)
		if err == nil && !strings.Contains(page, want) {
			err = fmt.Errorf("the response is %q", page)
		}
		return err
	})
}

// WaitBlocked waits until the pod's requests to url fail.
func (c *Cluster) WaitBlocked(pod, url string) {
	c.t.Helper()
	c.WaitFor(fmt.Sprintf("no response of %s to pod %s of %s", url, pod, c.Namespace), func(context.Context) error {
		if page, err := c.TryOC("exec", pod, "--", "timeout", "2", "wget", "-q", "-O", "-", url); err == nil {
			return fmt.Errorf("the response is %q", page)
		}
		return nil
	})
}

// waitLimit is the timeout of WaitFor. Most conditions are met within seconds, but upstream
// sometimes needs two minutes to detect that a volume's attachment has been deleted.
const waitLimit = 4 * time.Minute

// WaitFor waits until condition returns nil. After a timeout, it fails the test with the last error
// that condition returned.
func (c *Cluster) WaitFor(description string, condition func(context.Context) error) {
	c.t.Helper()
	if err := waitFor(condition); err != nil {
		c.t.Fatalf("wait for %s: %v", description, err)
	}
}

func waitFor(condition func(context.Context) error) error {
	// The context of condition expires after the wait does, so that the last error is not a
	// timeout.
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit+waitLimit/10)
	defer cancel()
	limit := time.After(waitLimit)
	for {
		start := time.Now()
		err := condition(ctx)
		if err == nil {
			return nil
		}
		// The pause is longer on a busy machine, because condition takes longer there.
		pause := min(max(100*time.Millisecond, 3*time.Since(start)), time.Second)
		select {
		case <-limit:
			return err
		case <-time.After(pause):
		}
	}
}

// podReady returns an error unless the pod is ready.
func podReady(pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return fmt.Errorf("pod %s is being deleted", pod.Name)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("pod %s is not ready: phase %s", pod.Name, pod.Status.Phase)
}

// In returns a copy of the cluster whose methods use the given namespace.
func (c *Cluster) In(namespace string) *Cluster {
	other := *c
	other.Namespace = namespace
	return &other
}

// TryOCWithInput works like TryOC but for a command that reads standard input.
func (c *Cluster) TryOCWithInput(input string, args ...string) (string, error) {
	return c.oc(input, args...)
}

func (c *Cluster) ocWithInput(input string, args ...string) string {
	c.t.Helper()
	output, err := c.oc(input, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return output
}

func (c *Cluster) oc(input string, args ...string) (string, error) {
	if c.master != nil {
		return c.master.In(c.Namespace).oc(input, args...)
	}
	result, err := c.run(input, c.program("oc"), c.ocArgs(args)...)
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("oc %s: exit code %d\n%s%s", strings.Join(args, " "), result.Code, result.Stdout, result.Stderr)
	}
	return result.Stdout, err
}

func (c *Cluster) ocCommand(ctx context.Context, args ...string) *exec.Cmd {
	return c.command(ctx, c.program("oc"), c.ocArgs(args)...)
}

func (c *Cluster) ocArgs(args []string) []string {
	return append([]string{"--namespace", c.Namespace}, args...)
}
