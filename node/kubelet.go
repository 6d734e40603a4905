package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	kubeletapis "k8s.io/kubelet/pkg/apis"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/volume"

	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/internal/cgroup"
	"github.com/slipway-platform/slipway/node/glusterfs"
	"github.com/slipway-platform/slipway/node/localquota"
	"github.com/slipway-platform/slipway/pki"
)

// MaxPods is OpenShift 3's default limit on pods per node (kubeletArguments.max-pods).
const MaxPods = 250

// Kubelet is the component that runs upstream's kubelet. Slipway's FlexVolume plugins replace
// upstream's FlexVolume plugin. Additional plugins support volume types that upstream has removed.
type Kubelet struct {
	// NodeName is the name of the Node object. NodeIP is the node's address.
	NodeName string
	NodeIP   net.IP
	// SecondNodeIP is the Node's IPv6 address. It is optional.
	SecondNodeIP netip.Addr
	// BindAddress and Port are the listen address.
	BindAddress net.IP
	Port        int
	// CertFile and KeyFile contain the serving certificate and its key. ClientCAFile contains the
	// CA bundle that verifies client certificates.
	CertFile, KeyFile, ClientCAFile string
	// Joined means that the cluster issues the host's certificates. The kubelet requests its
	// serving certificate instead of using CertFile, and renews the client certificate in
	// Kubeconfig.
	Joined bool
	// Kubeconfig is the path of the node's kubeconfig (system:node:<name>).
	Kubeconfig string
	// RootDirectory contains the pods' volumes. CertDirectory contains files that the kubelet
	// writes for itself.
	RootDirectory, CertDirectory string
	// PodLogsDirectory contains a directory with container output for each pod.
	PodLogsDirectory string
	// Shutdown specifies how long pods may take to terminate when the machine shuts down.
	Shutdown Shutdown
	// RuntimeSocket is the path of containerd's Unix socket.
	RuntimeSocket string
	// ImageSocket is the path of the image service's Unix socket.
	ImageSocket string
	// CgroupRoot is the parent cgroup of all pods, for example "/slipway".
	CgroupRoot string
	// Reserve specifies the part of the machine's resources that pods cannot use.
	Reserve Reserve
	// DNSIP, Domain and ResolvConf determine the content of resolv.conf in pods. ResolvConf is the
	// path of the host's file, or "" if the host has none.
	DNSIP, Domain, ResolvConf string
	// ManifestDirectory contains the manifests of static pods. If it is empty, there are no static
	// pods. The kubelet reads the directory every ManifestInterval.
	ManifestDirectory string
	ManifestInterval  time.Duration
	// AuthenticationTTL and AuthorizationTTL limit how long the kubelet caches authentication and
	// authorization responses. nil means upstream's default.
	AuthenticationTTL, AuthorizationTTL *time.Duration
	// CacheSizes limits the sizes of the authentication and authorization caches.
	CacheSizes CacheSizes
	// Connection overrides the settings for the connection to the API server.
	Connection Connection
	// VolumePluginDir is the directory in which FlexVolume drivers are installed. Prober loads the
	// drivers.
	VolumePluginDir string
	Prober          volume.DynamicPluginProber
	// OtherNetwork means that an administrator's CNI plugin provides the pod network. In this case,
	// Run calls ready even if the Node is not ready, because installing the plugin might require a
	// running kubelet.
	OtherNetwork bool
	// GroupQuota is the maximum number of bytes that the pods with the same FSGroup can store in
	// emptyDir volumes. 0 means no limit.
	GroupQuota int64
	// Arguments are the administrator's flags (kubeletArguments in node-config.yaml).
	Arguments arguments.Map
}

// Connection limits the kubelet's requests to the API server. A zero field means upstream's
// default.
type Connection struct {
	// ContentType is the media type of requests.
	ContentType string
	// QPS is the maximum number of requests per second. Burst is the number of requests by which
	// the kubelet can briefly exceed this rate.
	QPS   float32
	Burst int32
}

// Name returns the component's name.
func (k *Kubelet) Name() string { return "kubelet" }

// Run runs the kubelet until ctx is done. It calls ready when the kubelet serves requests and has
// received the node's existing pods from the API server. The Node must also be Ready, except with
// OtherNetwork.
func (k *Kubelet) Run(ctx context.Context, ready func()) error {
	server, err := k.server()
	if err != nil {
		return err
	}
	if err := k.checkQuota(); err != nil {
		return err
	}
	if err := cgroup.Create(server.CgroupRoot); err != nil {
		return err
	}
	file, err := cgroup.Lock(server.CgroupRoot)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := writeProfiles(server.RootDirectory); err != nil {
		return err
	}
	if err := ensurePullCredentials(server.RootDirectory); err != nil {
		return err
	}
	if err := ensureManifests(k.ManifestDirectory); err != nil {
		return err
	}
	for _, address := range server.ClusterDNS {
		// OpenShift 3's kubelet logs this line, and administrators search for it.
		klog.Infof("Kubelet is setting %s as a DNS nameserver for domain %q", address, server.ClusterDomain)
	}
	dependencies, err := app.UnsecuredDependencies(ctx, server, utilfeature.DefaultFeatureGate)
	if err != nil {
		return fmt.Errorf("set up kubelet: %w", err)
	}
	dependencies.DynamicPluginProber = k.Prober
	dependencies.VolumePlugins = k.volumePlugins(dependencies.VolumePlugins)

	connection, client, err := k.client()
	if err != nil {
		return err
	}
	if dependencies.Recorder, err = newNodeEvents(ctx, k.NodeName, connection, server.KubeletConfiguration); err != nil {
		return fmt.Errorf("record events as %q: %w", k.NodeName, err)
	}
	pods, closePods, err := dialKubelet(server.RootDirectory)
	if err != nil {
		return err
	}
	defer closePods()
	sync := &podSync{client: client, nodeName: k.NodeName, kubelet: pods}
	synced := make(chan struct{})
	if dependencies.Auth, err = newAuth(k.NodeName, client, server.KubeletConfiguration, k.CacheSizes, synced, ctx.Done()); err != nil {
		return err
	}
	pollCtx, cancelPoll := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !poll(pollCtx, sync.complete) {
			return
		}
		close(synced)
		if poll(pollCtx, func(ctx context.Context) bool {
			return (k.OtherNetwork || nodeReady(ctx, client, k.NodeName)) && k.serves()
		}) {
			if err := renewLease(pollCtx, client, k.NodeName, server.NodeLeaseDurationSeconds); err != nil {
				slog.Warn("cannot renew the node's lease at the start; the kubelet will renew it", "error", err)
			}
			ready()
		}
	}()
	err = app.Run(ctx, server, dependencies, utilfeature.DefaultFeatureGate)
	cancelPoll()
	<-done
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("run kubelet: %w", err)
}

func (k *Kubelet) server() (*options.KubeletServer, error) {
	server, err := options.NewKubeletServer()
	if err != nil {
		return nil, fmt.Errorf("set up kubelet: %w", err)
	}
	// The flags must be registered first, because registering a flag sets its option to upstream's
	// default.
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	server.AddFlags(flags)
	k.fillFlags(&server.KubeletFlags)
	k.fillConfiguration(&server.KubeletConfiguration)
	if err := ownLabels(k.Arguments).ApplyTo("kubeletArguments", flags); err != nil {
		return nil, err
	}
	// cAdvisor, which reads the containers' resource usage, takes its settings from the process's
	// flags. Without the socket, it finds only cgroups, and its metrics contain neither pods nor
	// namespaces.
	if err := flag.Set("containerd", k.RuntimeSocket); err != nil {
		return nil, fmt.Errorf("set up cAdvisor: %w", err)
	}
	if err := options.ValidateKubeletServer(server); err != nil {
		return nil, fmt.Errorf("check kubelet options: %w", err)
	}
	return server, nil
}

// KubeletFlags returns all kubelet flags, with upstream's defaults.
func KubeletFlags() (*pflag.FlagSet, error) {
	server, err := options.NewKubeletServer()
	if err != nil {
		return nil, fmt.Errorf("read kubelet flags: %w", err)
	}
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	server.AddFlags(flags)
	return flags, nil
}

// Check returns an error if the kubelet does not accept its settings.
func (k *Kubelet) Check() error {
	_, err := k.server()
	return errors.Join(err, k.checkQuota())
}

// volumePlugins adds Slipway's plugins to upstream's, and limits emptyDir volumes to GroupQuota.
func (k *Kubelet) volumePlugins(upstream []volume.VolumePlugin) []volume.VolumePlugin {
	if k.GroupQuota > 0 {
		upstream = localquota.Limit(upstream, k.GroupQuota)
	}
	return append(upstream, &glusterfs.Plugin{})
}

// checkQuota returns an error if the file system that contains volumes cannot enforce GroupQuota.
func (k *Kubelet) checkQuota() error {
	if k.GroupQuota == 0 {
		return nil
	}
	if err := os.MkdirAll(k.RootDirectory, 0o750); err != nil {
		return err
	}
	return localquota.Check(k.RootDirectory)
}

// ownLabels removes the labels that a kubelet is not allowed to set on its Node, such as role
// labels. The control plane sets the labels of the node's group.
func ownLabels(arguments arguments.Map) arguments.Map {
	const name = "node-labels"
	values, exists := arguments[name]
	if !exists {
		return arguments
	}
	var own []string
	for _, label := range strings.Split(strings.Join(values, ","), ",") {
		key, _, _ := strings.Cut(strings.TrimSpace(label), "=")
		domain, _, _ := strings.Cut(key, "/")
		reserved := strings.HasSuffix("."+domain, ".kubernetes.io") || strings.HasSuffix("."+domain, ".k8s.io")
		if key != "" && (!reserved || kubeletapis.IsKubeletLabel(key)) {
			own = append(own, label)
		}
	}
	result := maps.Clone(arguments)
	if delete(result, name); len(own) > 0 {
		result[name] = []string{strings.Join(own, ",")}
	}
	return result
}

func (k *Kubelet) fillFlags(flags *options.KubeletFlags) {
	flags.HostnameOverride = k.NodeName
	flags.NodeIP = k.NodeIP.String()
	if k.SecondNodeIP.IsValid() {
		flags.NodeIP += "," + k.SecondNodeIP.String()
	}
	flags.KubeConfig = k.Kubeconfig
	flags.RootDirectory = k.RootDirectory
	flags.CertDirectory = k.CertDirectory
	// Use the runtime's default profile for a pod without a seccomp profile. Without a system call
	// filter, any user has all capabilities in a new user namespace. This field also exists in the
	// configuration, but a value set there could not be overridden by an argument.
	flags.SeccompDefault = true
}

func (k *Kubelet) fillConfiguration(c *kubeletconfig.KubeletConfiguration) {
	c.Address, c.Port, c.ReadOnlyPort = k.BindAddress.String(), int32(k.Port), 0
	c.HealthzPort = 0
	if k.Joined {
		c.ServerTLSBootstrap, c.RotateCertificates = true, true
	} else {
		c.TLSCertFile, c.TLSPrivateKeyFile = k.CertFile, k.KeyFile
	}
	c.Authentication.X509.ClientCAFile = k.ClientCAFile
	c.Authentication.Anonymous.Enabled = false
	c.Authentication.Webhook.Enabled = true
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeWebhook
	// Cache denials only briefly. During the first second of a new cluster, requests can be denied
	// because the role with the API server's own permissions does not exist yet.
	c.Authorization.Webhook.CacheUnauthorizedTTL = metav1.Duration{Duration: time.Second}

	c.ContainerRuntimeEndpoint, c.ImageServiceEndpoint = "unix://"+k.RuntimeSocket, "unix://"+k.ImageSocket
	// The image service decides which pulls wait. The kubelet's own queue does not distinguish
	// between namespaces, and its rate limit makes pulls fail.
	c.SerializeImagePulls, c.MaxParallelImagePulls, c.RegistryPullQPS = false, nil, 0
	c.CgroupDriver, c.CgroupRoot = "cgroupfs", k.CgroupRoot
	c.FailCgroupV1 = false
	c.FailSwapOn = false
	c.MaxPods = MaxPods
	c.PodLogsDir = k.PodLogsDirectory
	// Use the minimum that the kubelet allows, because a log can exceed its size limit by the
	// output produced in this interval.
	c.ContainerLogMonitorInterval = metav1.Duration{Duration: 3 * time.Second}
	c.PodPidsLimit, c.SystemReserved, c.EvictionHard = PodPidsLimit, k.Reserve.resources(), evictionHard()
	c.ClusterDNS, c.ClusterDomain, c.ResolverConfig = []string{k.DNSIP}, k.Domain, k.ResolvConf
	c.StaticPodPath = k.ManifestDirectory
	if k.ManifestInterval > 0 {
		c.FileCheckFrequency = metav1.Duration{Duration: k.ManifestInterval}
	}
	k.Shutdown.fill(c)
	k.fillClients(c)
	c.VolumePluginDir = k.VolumePluginDir
	c.EnableControllerAttachDetach = true
	// Do not create the kubelet's iptables chains, because no program on the host shares iptables
	// with the kubelet, and nothing would remove the tables.
	c.MakeIPTablesUtilChains = false
	// A volume is attached only after the Node's status lists it as in use. With upstream's
	// interval of ten seconds, a pod would often wait for most of the interval. The kubelet still
	// sends the status only if it has changed.
	c.NodeStatusUpdateFrequency = metav1.Duration{Duration: time.Second}
	c.EnableDebuggingHandlers = true
	c.EnableContentionProfiling, c.EnableProfilingHandler = false, false
}

// fillClients sets how long the kubelet caches the authentication and authorization of its clients.
// It also sets the format and limits of the kubelet's own requests to the API server.
func (k *Kubelet) fillClients(c *kubeletconfig.KubeletConfiguration) {
	if k.AuthenticationTTL != nil {
		c.Authentication.Webhook.CacheTTL = metav1.Duration{Duration: *k.AuthenticationTTL}
	}
	if k.AuthorizationTTL != nil {
		c.Authorization.Webhook.CacheAuthorizedTTL = metav1.Duration{Duration: *k.AuthorizationTTL}
	}
	c.ContentType = cmp.Or(k.Connection.ContentType, c.ContentType)
	if k.Connection.QPS > 0 {
		c.KubeAPIQPS = int32(math.Ceil(float64(k.Connection.QPS)))
	}
	c.KubeAPIBurst = cmp.Or(k.Connection.Burst, c.KubeAPIBurst)
}

func (k *Kubelet) client() (*rest.Config, kubernetes.Interface, error) {
	config, err := pki.ReadKubeconfig(k.Kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect as %q: %w", k.NodeName, err)
	}
	return config, client, nil
}

// serves reports whether the kubelet listens and has a serving certificate. The Node alone is not
// sufficient, because its Ready condition can date from before a restart.
func (k *Kubelet) serves() bool {
	address := net.JoinHostPort(k.NodeIP.String(), strconv.Itoa(k.Port))
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	if !k.Joined {
		return true
	}
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	// InsecureSkipVerify is safe here, because the API server verifies the certificate.
	return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake() == nil
}

// nodeReady reports whether the Node's Ready condition is true.
func nodeReady(ctx context.Context, client kubernetes.Interface, name string) bool {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// HostResolvConf returns the path of the resolv.conf file for pods, or "" if the host has none. On
// hosts with systemd-resolved, this is the file with the upstream servers, because the stub address
// does not work in a pod.
func HostResolvConf() string {
	for _, path := range []string{"/run/systemd/resolve/resolv.conf", "/etc/resolv.conf"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}
