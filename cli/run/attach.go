package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	kubectlattach "k8s.io/kubectl/pkg/cmd/attach"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/polymorphichelpers"
)

// session contains the values of kubectl's flags for attaching to a container.
type session struct {
	attach, stdin, tty, remove bool
	// leaveOpen keeps the container's standard input open after the session.
	leaveOpen  bool
	quiet      bool
	detachKeys string
	timeout    time.Duration
}

// readSession reads the flags. --stdin and --tty imply --attach, unless --attach is set.
func readSession(command *cobra.Command) (session, error) {
	flags := command.Flags()
	isSet := func(name string) bool { return util.GetFlagBool(command, name) }
	s := session{
		attach: isSet("attach"), stdin: isSet("stdin"), tty: isSet("tty"), remove: isSet("rm"), leaveOpen: isSet("leave-stdin-open"),
		quiet: isSet("quiet"), detachKeys: util.GetFlagString(command, "detach-keys"),
	}
	if !flags.Changed("attach") {
		s.attach = s.stdin || s.tty
	}
	var err error
	s.timeout, err = util.GetPodRunningTimeoutFlag(command)
	return s, err
}

// checkDryRun returns an error if --attach is combined with a dry run, because a dry run does not
// create a container.
func (s session) checkDryRun(dry bool) error {
	if s.attach && dry {
		return errors.New("--dry-run can't be used with attached containers options (--attach, --stdin, or --tty): it creates nothing")
	}
	return nil
}

// check returns an error if some flags cannot be combined, or if the generator does not support
// them.
func (s session) check(generator string, replicas int32, dry bool) error {
	if err := s.checkDryRun(dry); err != nil {
		return err
	}
	switch {
	case s.tty && !s.stdin:
		return errors.New("a terminal (-t) needs standard input; also set -i")
	case s.remove && !s.attach:
		return errors.New("--rm needs an attached container; also set --attach or -i")
	case (s.attach || s.stdin) && generator == cronGenerator:
		return errors.New("cannot attach to the pods of a cron job, which start later")
	case s.attach && replicas != 1:
		return fmt.Errorf("cannot attach to more than one pod; set --replicas=1 instead of %d", replicas)
	}
	return nil
}

// open waits for the first pod of an object and attaches to it. If the pod has already terminated,
// open prints the pod's log instead.
func (s session) open(ctx context.Context, factory util.Factory, streams genericiooptions.IOStreams, name string, object runtime.Object) error {
	config, err := factory.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := coreclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	first, err := polymorphichelpers.AttachablePodForObjectFn(factory, object, s.timeout)
	if err != nil {
		return fmt.Errorf("wait for a pod to attach to: %w", err)
	}
	pod, err := started(ctx, client.Pods(first.Namespace), first.Name)
	if err != nil {
		return fmt.Errorf("wait for pod %q to run: %w", first.Name, err)
	}
	if pod.Status.Phase != corev1.PodRunning {
		return show(ctx, client.Pods(pod.Namespace), pod, streams.Out)
	}
	o := kubectlattach.NewAttachOptions(streams)
	o.Config, o.Pod, o.PodName, o.Namespace, o.GetPodTimeout = config, pod, pod.Name, pod.Namespace, s.timeout
	o.CommandName, o.Stdin, o.TTY, o.Quiet, o.DetachKeys = name, s.stdin, s.tty, s.quiet, s.detachKeys
	return o.Run()
}

// started returns a pod when all of its containers are running or the pod has terminated.
func started(ctx context.Context, pods coreclient.PodInterface, name string) (*corev1.Pod, error) {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	changes := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return pods.Watch(ctx, options)
		},
	}
	event, err := watchtools.UntilWithSync(ctx, changes, &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
		pod := event.Object.(*corev1.Pod)
		if event.Type == watch.Deleted {
			return false, fmt.Errorf("pod %q was deleted", name)
		}
		waits := func(c corev1.ContainerStatus) bool { return c.State.Running == nil }
		hasEnded := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		return hasEnded || pod.Status.Phase == corev1.PodRunning && !slices.ContainsFunc(pod.Status.ContainerStatuses, waits), nil
	})
	if err != nil {
		return nil, err
	}
	return event.Object.(*corev1.Pod), nil
}

// show prints the log of a pod's first container.
func show(ctx context.Context, pods coreclient.PodInterface, pod *corev1.Pod, out io.Writer) error {
	log, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{Container: pod.Spec.Containers[0].Name}).Stream(ctx)
	if err != nil {
		return fmt.Errorf("read log of pod %q: %w", pod.Name, err)
	}
	defer log.Close()
	_, err = io.Copy(out, log)
	return err
}

// remove deletes the created objects and their pods.
func remove(factory util.Factory, objects []runtime.Object) error {
	var problems []error
	for _, object := range objects {
		client, mapping, err := clientFor(factory, object)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		accessor, err := meta.Accessor(object)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		background, uid := metav1.DeletePropagationBackground, accessor.GetUID()
		options := &metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}}
		_, err = resource.NewHelper(client, mapping).DeleteWithOptions(accessor.GetNamespace(), accessor.GetName(), options)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
