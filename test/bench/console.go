package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	kubeappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/test/bench/host"
)

const (
	consoleScript = "test/bench/console/measure.mjs"
	// fewProject and manyProject are the projects for the web console's measurements. fewPods and
	// manyPods are the numbers of their pods. No scheduler binds the pods.
	fewProject, manyProject = "few", "many"
	fewPods, manyPods       = 20, 5000
	// watchSeconds is the duration, in seconds, of each measurement of changes.
	watchSeconds = 30
	// changesInterval is the time between two pod changes.
	changesInterval = 50 * time.Millisecond
	// visiblePods is the number of pods on the first screen of a list. Every second change affects
	// one of these pods.
	visiblePods   = 15
	nobody        = "nobody"
	consoleRounds = 5
)

// traffic contains the sizes, in bytes, of the responses that a page received. Received is the size
// of the console's files and API is the size of API responses, both with headers. Files is the
// compressed size of the console's files without headers, and Count is the number of these files.
// Scripts, Styles and Fonts are parts of Files.
type traffic struct{ Received, API, Files, Count, Scripts, Styles, Fonts float64 }

// consoleLoad contains page sizes, and the times from the login until the overview is complete, in
// ms.
type consoleLoad struct {
	Catalog, OverviewBytes traffic
	Overview               []float64
}

// consoleWatch contains measurements of a page that shows changes: times in ms and sizes in bytes.
// Complete is the time from the login until the page contains all pods. The other measurements
// start after that. Pictures contains the times from requests that change a pod until the page
// shows the change. Drawings contains the times from the corresponding watch events until then.
type consoleWatch struct {
	Frames, Pictures, Drawings []float64
	Complete, Heap, Memory     float64
}

// webConsole contains the web console's measurements.
type webConsole struct {
	load      consoleLoad
	few, many consoleWatch
}

// consoleFixture is the cluster in which the web console is measured.
type consoleFixture struct {
	*cluster
	host     *host.Host
	password string
	result   *webConsole
}

// measureConsole boots a separate cluster, measures its web console and removes it.
func measureConsole(ctx context.Context, dir, program string) (*webConsole, error) {
	result := &webConsole{}
	return result, onSlipway(ctx, filepath.Join(dir, "console"), "/slipway-bench-console", program, "", func(c *cluster, s *slipway) error {
		password, err := os.ReadFile(s.data("developer.password"))
		if err != nil {
			return err
		}
		f := &consoleFixture{cluster: c, host: s.host, password: strings.TrimSpace(string(password)), result: result}
		return f.measure(ctx)
	})
}

func (f *consoleFixture) measure(ctx context.Context) error {
	if err := f.createProject(ctx, fewProject, fewPods); err != nil {
		return err
	}
	if _, err := f.client.AppsV1().Deployments(fewProject).Create(ctx, emptyDeployment(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create deployment: %w", err)
	}
	if err := f.play(ctx, &f.result.load, "load", fewProject, strconv.Itoa(consoleRounds)); err != nil {
		return err
	}
	if err := f.watch(ctx, &f.result.few, fewProject, fewPods); err != nil {
		return err
	}
	if err := f.createProject(ctx, manyProject, manyPods); err != nil {
		return err
	}
	return f.watch(ctx, &f.result.many, manyProject, manyPods)
}

// createProject creates a project for the developer with pods that no scheduler binds.
func (f *consoleFixture) createProject(ctx context.Context, name string, pods int) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := f.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create project: %w", err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "developer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: tenant}},
	}
	if _, err := f.client.RbacV1().RoleBindings(name).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create role binding: %w", err)
	}
	if err := f.waitServiceAccount(ctx, name); err != nil {
		return err
	}
	return host.Each(ctx, pods, func(i int) error {
		_, err := f.client.CoreV1().Pods(name).Create(ctx, unboundPod(i), metav1.CreateOptions{})
		return err
	})
}

// waitServiceAccount waits until pods can use the default service account.
func (f *consoleFixture) waitServiceAccount(ctx context.Context, project string) error {
	for {
		_, err := f.client.CoreV1().ServiceAccounts(project).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		if pause := host.Pause(ctx, 50*time.Millisecond); pause != nil {
			return fmt.Errorf("wait for service account of project %q: %w", project, err)
		}
	}
}

func podName(i int) string { return fmt.Sprintf("pod-%05d", i) }

func unboundPod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName(i), Labels: map[string]string{"app": "bench"}},
		Spec:       corev1.PodSpec{SchedulerName: nobody, Containers: []corev1.Container{{Name: "main", Image: "pause"}}},
	}
}

// emptyDeployment returns a Deployment without pods, which the overview shows as an application.
func emptyDeployment() *kubeappsv1.Deployment {
	labels, none := map[string]string{"app": "front"}, int32(0)
	return &kubeappsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "front"},
		Spec: kubeappsv1.DeploymentSpec{
			Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: unboundPod(0).Spec},
		},
	}
}

// watch measures the list of a project's pods while the pods change.
func (f *consoleFixture) watch(ctx context.Context, into *consoleWatch, project string, pods int) error {
	changes, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- f.change(changes, project, pods) }()
	err := f.play(ctx, into, "watch", project, strconv.Itoa(watchSeconds), strconv.Itoa(pods))
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	if len(into.Pictures) == 0 {
		return fmt.Errorf("project %q: the page showed no change", project)
	}
	return nil
}

// change updates one pod after another until ctx is done. It sets the reason in each pod's status
// to the time of the request.
func (f *consoleFixture) change(ctx context.Context, project string, pods int) error {
	ticker := time.NewTicker(changesInterval)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		number := i / 2 % visiblePods
		if i%2 == 1 {
			number = i * 7 % pods
		}
		patch := fmt.Sprintf(`{"status":{"reason":"t%d"}}`, time.Now().UnixMilli())
		_, err := f.client.CoreV1().Pods(project).Patch(ctx, podName(number), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("change pod: %w", err)
		}
	}
}

// play runs the script in the cluster's network namespace and decodes its result.
func (f *consoleFixture) play(ctx context.Context, into any, args ...string) error {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return fmt.Errorf("find browser: %w; run make setup", err)
	}
	command := exec.CommandContext(ctx, "node", append([]string{consoleScript}, args...)...)
	command.Env = append(os.Environ(), "CHROMIUM="+chromium, "CONSOLE_URL=https://"+host.Address+":8443", "CONSOLE_PASSWORD="+f.password)
	command.WaitDelay = 5 * time.Second
	var output, problems bytes.Buffer
	command.Stdout, command.Stderr = &output, &problems
	if err := f.host.Start(command); err != nil {
		return fmt.Errorf("run %s: %w", consoleScript, err)
	}
	if err := command.Wait(); err != nil {
		return fmt.Errorf("run %s %s: %w\n%s", consoleScript, strings.Join(args, " "), err, problems.String())
	}
	return json.Unmarshal(output.Bytes(), into)
}
