// Package debug implements `oc debug`, which runs a shell in a copy of a pod and then deletes the
// copy.
//
// The command follows OpenShift 3.11's client. As in later versions of the client, it can also
// debug nodes.
package debug

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	securityv1 "github.com/openshift/api/security/v1"
	securityclient "github.com/openshift/client-go/security/clientset/versioned/typed/security/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/cmd/attach"
	kubectlexec "k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
	"k8s.io/kubectl/pkg/util/interrupt"
	"k8s.io/kubectl/pkg/util/term"
)

// debugging holds the state of `oc debug`.
type debugging struct {
	genericiooptions.IOStreams
	options
	clients kubernetes.Interface
	files   resource.FilenameOptions
	// review creates a review and returns it with the status that the server sets.
	review func(ctx context.Context, namespace string, review *securityv1.PodSecurityPolicySubjectReview) (*securityv1.PodSecurityPolicySubjectReview, error)
	// attach connects the command's streams to a running container's streams.
	attach func(pod *corev1.Pod, container string, handler *interrupt.Handler) error

	forceTerminal, noTerminal, noInput, asRoot, withMyRights bool
	timeout                                                  time.Duration
}

// New returns the `oc debug` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	d, print := &debugging{IOStreams: streams, timeout: 15 * time.Minute}, genericclioptions.NewPrintFlags("created").WithTypeSetter(scheme.Scheme)
	command := &cobra.Command{
		Use:   "debug TYPE/NAME [NAME=VALUE...] [-c CONTAINER] [-- COMMAND]",
		Short: "Launch a new instance of a pod for debugging",
		Long: `Start a copy of a pod, or of the pod of a deployment config or another controller, with a shell instead of its command.

The copy has no labels and no probes, so that no controller or service uses it. It is removed when the shell or command ends. You can set
variables of its environment, or remove them with a minus sign after their names. The copy runs with your permissions:
--as-root fails if none of your security context constraints allows it. If the pod requests more than its own service account may use, no copy
starts unless you add --with-my-rights: the author of the pod could otherwise use your permissions.

A tag of an image stream is debugged in a pod with its image. A node is debugged in a privileged pod of --image, with the node's files in /host.`,
		Example: `  oc debug dc/web
  oc debug dc/web -c side MODE=verbose -- env
  oc debug dc/web --as-user=1000000
  oc debug node/one --image=registry.example.com/tools -- chroot /host journalctl
  oc debug istag/web:latest
  oc debug dc/web -o yaml`,
		Run: func(command *cobra.Command, args []string) {
			args, err := d.read(command, args)
			util.CheckErr(err)
			util.CheckErr(d.connect(factory))
			info, err := d.find(factory, args)
			util.CheckErr(err)
			namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			pod, original, err := d.of(info.Object, info.Mapping.Resource.Resource)
			if err != nil {
				util.CheckErr(fmt.Errorf("debug %s: %w", info.ObjectName(), err))
			}
			if pod.Namespace == "" {
				pod.Namespace = namespace
			}
			dry, err := util.GetDryRunStrategy(command)
			util.CheckErr(err)
			if dry != util.DryRunNone || *print.OutputFormat != "" {
				util.PrintFlagsWithDryRunStrategy(print, dry)
				printer, err := print.ToPrinter()
				util.CheckErr(err)
				pod, err = d.rehearse(command.Context(), pod, dry)
				util.CheckErr(err)
				util.CheckErr(printer.PrintObj(pod, streams.Out))
				return
			}
			if util.IsFilenameSliceEmpty(d.files.Filenames, d.files.Kustomize) {
				util.CheckErr(d.checkAccount(command.Context(), pod.Namespace))
			}
			util.CheckErr(d.run(command.Context(), pod, original))
		},
	}
	print.AddFlags(command)
	d.addFlags(command)
	return command
}

func (d *debugging) addFlags(command *cobra.Command) {
	util.AddDryRunFlag(command)
	util.AddFilenameOptionFlags(command, &d.files, "naming the object to debug.")
	flags := command.Flags()
	flags.StringVarP(&d.container, "container", "c", "", "Name of the container. The default is the first one.")
	flags.StringVar(&d.image, "image", "", "Image of the container, instead of its own.")
	flags.StringVar(&d.nodeName, "node-name", "", "Name of the node to run on. The default is any node.")
	flags.BoolVar(&d.asRoot, "as-root", false, "Run as root. With --as-root=false, run as any user except root.")
	flags.Int64Var(&d.user, "as-user", -1, "UID to run as.")
	flags.BoolVar(&d.withMyRights, "with-my-rights", false, "Run the copy even if the pod's service account is not allowed to run it.")
	flags.BoolVar(&d.keepAnnotations, "keep-annotations", false, "Keep the pod's annotations.")
	flags.BoolVar(&d.keepLiveness, "keep-liveness", false, "Keep the liveness and startup probes.")
	flags.BoolVar(&d.keepReadiness, "keep-readiness", false, "Keep the readiness probes.")
	flags.BoolVar(&d.keepInitContainers, "keep-init-containers", true, "Keep the init containers.")
	flags.BoolVar(&d.oneContainer, "one-container", false, "Remove the other containers.")
	flags.BoolVarP(&d.forceTerminal, "tty", "t", false, "Use a terminal, even with a command.")
	flags.BoolVarP(&d.noTerminal, "no-tty", "T", false, "Do not use a terminal.")
	flags.BoolVarP(&d.noInput, "no-stdin", "I", false, "Do not connect standard input.")
}

// read parses the flags and arguments. The arguments contain object names, environment variables
// and the debug command. read stores the variables and the command, derives terminal and input from
// the flags, and returns the names.
func (d *debugging) read(command *cobra.Command, args []string) (names []string, err error) {
	if at := command.ArgsLenAtDash(); at >= 0 {
		args, d.command = args[:at], args[at:]
	}
	for _, arg := range args {
		if strings.Contains(arg, "=") || strings.HasSuffix(arg, "-") {
			d.environment = append(d.environment, arg)
			continue
		}
		names = append(names, arg)
	}
	if command.Flags().Changed("as-root") {
		d.root = &d.asRoot
	}
	switch {
	case d.forceTerminal && (d.noTerminal || d.noInput):
		return nil, errors.New("-t cannot be used with -T or -I")
	case d.root != nil && d.user >= 0:
		return nil, errors.New("use only one of --as-root and --as-user")
	case command.Flags().Changed("as-user") && d.user < 0:
		return nil, errors.New("--as-user must be a UID, 0 or above")
	case len(names) != 1 && util.IsFilenameSliceEmpty(d.files.Filenames, d.files.Kustomize):
		return nil, errors.New("specify one object to debug as TYPE/NAME, or a file with -f")
	}
	d.input = d.forceTerminal || len(d.command) == 0 && !d.noInput
	d.terminal = d.forceTerminal || d.input && !d.noTerminal && term.TTY{In: d.In}.IsTerminalIn()
	if len(d.command) == 0 {
		d.command = []string{"/bin/sh"}
	}
	return names, nil
}

// connect sets the client, and the functions review and attach.
func (d *debugging) connect(factory util.Factory) error {
	clients, err := factory.KubernetesClientSet()
	if err != nil {
		return err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return err
	}
	security, err := securityclient.NewForConfig(config)
	if err != nil {
		return err
	}
	d.clients = clients
	d.review = func(ctx context.Context, namespace string, review *securityv1.PodSecurityPolicySubjectReview) (*securityv1.PodSecurityPolicySubjectReview, error) {
		return security.PodSecurityPolicySubjectReviews(namespace).Create(ctx, review, metav1.CreateOptions{})
	}
	d.attach = func(pod *corev1.Pod, container string, handler *interrupt.Handler) error {
		return (&attach.AttachOptions{
			StreamOptions: kubectlexec.StreamOptions{
				Namespace: pod.Namespace, PodName: pod.Name, ContainerName: container, Stdin: true, TTY: d.terminal, Quiet: true,
				InterruptParent: handler, IOStreams: d.IOStreams,
			},
			Pod: pod, AttachFunc: attach.DefaultAttachFunc, Attach: &attach.DefaultRemoteAttach{}, Config: config,
		}).Run()
	}
	return nil
}

// find returns the object to debug.
func (d *debugging) find(factory util.Factory, names []string) (*resource.Info, error) {
	namespace, enforce, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	builder := factory.NewBuilder().WithScheme(scheme.Scheme, scheme.Scheme.PrioritizedVersionsAllGroups()...).
		NamespaceParam(namespace).DefaultNamespace().FilenameParam(enforce, &d.files).Flatten()
	if len(names) > 0 {
		builder = builder.ResourceNames("pods", names...)
	}
	infos, err := builder.Do().Infos()
	if err == nil && len(infos) != 1 {
		err = errors.New("debug needs exactly one object")
	}
	if err != nil {
		return nil, err
	}
	return infos[0], nil
}

// logs prints a container's log until the container exits.
func (d *debugging) logs(ctx context.Context, pod *corev1.Pod, container string) error {
	stream, err := d.clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
	if err != nil {
		return fmt.Errorf("read log of pod %q: %w", pod.Name, err)
	}
	defer stream.Close()
	_, err = io.Copy(d.Out, stream)
	return err
}
