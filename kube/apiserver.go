package kube

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/arguments"
)

// NamedCertificate is a certificate with its key. The server uses it for clients that request one
// of the host names. A name can begin with "*.".
type NamedCertificate struct {
	Names             []string
	CertFile, KeyFile string
}

// APIServer is the component that runs upstream's API server, with Slipway's API groups as an
// additional server in the delegation chain. It reads certificates and keys from files, and reloads
// them if upstream supports reloading.
type APIServer struct {
	// BindAddress and Port are the listen address. AdvertiseAddress is the endpoint address of the
	// `kubernetes` service.
	BindAddress, AdvertiseAddress net.IP
	Port                          int
	// BindNetwork is "tcp4" or "tcp6" if the server listens only on addresses of one IP family. It
	// is optional.
	BindNetwork string
	// DNSPort is the port of the master's DNS server in the `kubernetes` service, or 0 if the master
	// has no DNS server.
	DNSPort int32
	// CertFile and KeyFile are the paths of the serving certificate and its key.
	CertFile, KeyFile string
	// ClientCAFile is the path of the CA bundle that verifies client certificates.
	ClientCAFile string
	// EtcdSocket is etcd's Unix socket. EncryptionConfigFile, if set, configures encryption at
	// rest.
	EtcdSocket, EncryptionConfigFile string
	// KubeletCertFile, KubeletKeyFile and KubeletCAFile are the credentials for connections to
	// kubelets.
	KubeletCertFile, KubeletKeyFile, KubeletCAFile string
	// FrontProxyCAFile, FrontProxyCertFile and FrontProxyKeyFile authenticate this server to
	// aggregated API servers.
	FrontProxyCAFile, FrontProxyCertFile, FrontProxyKeyFile string
	// ServiceAccountKeyFile is the path of the private key that signs tokens. ServiceAccountKeyFiles
	// are the paths of the public keys that verify them.
	ServiceAccountKeyFile  string
	ServiceAccountKeyFiles []string
	// NamedCertificates take precedence over CertFile for clients that request one of their names.
	NamedCertificates []NamedCertificate
	// MinTLSVersion, such as "VersionTLS12", and CipherSuites, a list of Go's cipher suite names,
	// restrict TLS. Go's defaults apply if they are empty.
	MinTLSVersion string
	CipherSuites  []string
	// CORSOrigins are regular expressions that match the allowed origins of requests from browsers.
	CORSOrigins []string
	// ServiceCIDR is the service network. It can be followed by a comma and the IPv6 service
	// network.
	ServiceCIDR string
	// NodePorts is the port range of NodePort services; nil means 30000-32767.
	NodePorts *utilnet.PortRange
	// Domain is the cluster's DNS domain, for example "cluster.local".
	Domain string
	// Audit configures the audit log. If it is nil, the audit log is disabled.
	Audit *Audit
	// Recorder, if set, gives other servers access to the API server's authentication and audit
	// log.
	Recorder *apiserver.Recorder
	// Arguments are the administrator's flags (kubernetesMasterConfig.apiServerArguments).
	Arguments arguments.Map
	// Plugins are the configured admission plugins. Run writes their configuration to
	// AdmissionFile.
	Plugins       []Plugin
	AdmissionFile string
	// LimitSecretReferences means that a pod can use only the secrets that its service account
	// lists.
	LimitSecretReferences bool
	// Features are Slipway's additions: API groups, admission plugins and hooks.
	Features []apiserver.Feature
}

// Name returns the component's name.
func (s *APIServer) Name() string { return "apiserver" }

// Run serves requests until ctx is done. It calls ready when /readyz returns ok.
func (s *APIServer) Run(ctx context.Context, ready func()) error {
	authorizer := &apiserver.Authorizer{}
	completed, err := s.options(ctx, authorizer)
	if err != nil {
		return err
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return fmt.Errorf("set up API server: %w", err)
	}
	kubelets := newDrainer()
	kubelets.lastRenewal = renewals{config.KubeAPIs.ControlPlane.Generic.LoopbackClientConfig}.last
	config.KubeAPIs.Extra.KubeletClientConfig.Lookup = kubelets.lookup
	etcd, err := newEtcdConnection(config.Options.Etcd)
	if err != nil {
		return err
	}
	defer etcd.close()
	server, err := s.chain(config, authorizer, etcd)
	if err != nil {
		return err
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return fmt.Errorf("prepare API server: %w", err)
	}
	// Release this map: it contains two thousand definitions, and each server in the chain has its
	// own copy. Code that needs the map later recreates it.
	config.KubeAPIs.ControlPlane.Generic.OpenAPIV3Config.Definitions = nil

	pollCtx, cancelPoll := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		loopback := config.KubeAPIs.ControlPlane.Generic.LoopbackClientConfig
		if untilReady(pollCtx, loopback) == nil {
			ready()
			masterService{s.DNSPort}.maintain(pollCtx, kubernetes.NewForConfigOrDie(loopback))
		}
	}()
	err = prepared.Run(ctx)
	cancelPoll()
	<-done
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("run API server: %w", err)
}

// untilReady returns nil when the API server responds to /readyz with 200, or the context's error
// if the context is done first.
func untilReady(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(config))
	if err != nil {
		return fmt.Errorf("create API server client: %w", err)
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var code int
		client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		return code == http.StatusOK, nil
	})
}

func (s *APIServer) options(ctx context.Context, authorizer *apiserver.Authorizer) (options.CompletedOptions, error) {
	opts := options.NewServerRunOptions()
	// Call Flags before fill: registering a flag sets its option to upstream's default.
	flags := opts.Flags()
	s.fill(opts)
	if err := s.setPlugins(opts.Admission); err != nil {
		return options.CompletedOptions{}, err
	}
	if err := admit(opts.Admission.GenericAdmission, s.Features); err != nil {
		return options.CompletedOptions{}, err
	}
	if err := apply(s.Arguments, "kubernetesMasterConfig.apiServerArguments", flags); err != nil {
		return options.CompletedOptions{}, err
	}
	admission := opts.Admission.GenericAdmission
	// This decorator comes first, because other decorators hide the plugins.
	admission.Decorators = slices.Insert(admission.Decorators, 0, withAuthorizer(authorizer))
	name, err := cache.NewInformerName("kube-apiserver")
	if err != nil {
		return options.CompletedOptions{}, fmt.Errorf("create informer name: %w", err)
	}
	opts.InformerName = name
	completed, err := opts.Complete(ctx)
	if err != nil {
		return options.CompletedOptions{}, fmt.Errorf("complete API server options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return options.CompletedOptions{}, fmt.Errorf("check API server options: %w", errors.NewAggregate(errs))
	}
	return completed, nil
}

func (s *APIServer) fill(opts *options.ServerRunOptions) {
	opts.AllowPrivileged = true
	opts.GenericServerRunOptions.AdvertiseAddress = s.AdvertiseAddress
	// Without this setting, a shutdown waits up to a minute for clients' watches.
	opts.GenericServerRunOptions.ShutdownSendRetryAfter = true
	opts.GenericServerRunOptions.CorsAllowedOriginList = s.CORSOrigins
	opts.SecureServing.BindAddress, opts.SecureServing.BindPort, opts.SecureServing.BindNetwork = s.BindAddress, s.Port, s.BindNetwork
	opts.SecureServing.ServerCert.CertKey.CertFile = s.CertFile
	opts.SecureServing.ServerCert.CertKey.KeyFile = s.KeyFile
	opts.SecureServing.MinTLSVersion, opts.SecureServing.CipherSuites = s.MinTLSVersion, s.CipherSuites
	for _, cert := range s.NamedCertificates {
		opts.SecureServing.SNICertKeys = append(opts.SecureServing.SNICertKeys, cliflag.NamedCertKey(cert))
	}
	// Users can use profiling if their roles list its paths, as the cluster-debugger role does.
	opts.Features.EnableProfiling = true
	opts.Features.EnableContentionProfiling = false
	// HSTS is for browsers, which open login pages on this server.
	opts.GenericServerRunOptions.HSTSDirectives = []string{"max-age=31536000"}

	opts.Etcd.StorageConfig.Transport.ServerList = []string{"unix://" + s.EtcdSocket}
	opts.Etcd.EncryptionProviderConfigFilepath = s.EncryptionConfigFile
	opts.Etcd.EncryptionProviderConfigAutomaticReload = s.EncryptionConfigFile != ""

	opts.ServiceClusterIPRanges = s.ServiceCIDR
	if s.NodePorts != nil {
		opts.ServiceNodePortRange = *s.NodePorts
	}
	opts.KubeletConfig.TLSClientConfig.CertFile = s.KubeletCertFile
	opts.KubeletConfig.TLSClientConfig.KeyFile = s.KubeletKeyFile
	opts.KubeletConfig.TLSClientConfig.CAFile = s.KubeletCAFile
	// Prefer a node's address, because its name might not resolve.
	opts.KubeletConfig.PreferredAddressTypes = []string{"InternalIP", "Hostname", "ExternalIP"}

	s.fillAuthentication(opts)
	s.fillAudit(opts)
}

func (s *APIServer) fillAuthentication(opts *options.ServerRunOptions) {
	opts.Authentication.ClientCert.ClientCA = s.ClientCAFile
	proxy := opts.Authentication.RequestHeader
	proxy.ClientCAFile = s.FrontProxyCAFile
	proxy.AllowedNames = []string{"front-proxy-client"}
	proxy.UsernameHeaders = []string{"X-Remote-User"}
	proxy.GroupHeaders = []string{"X-Remote-Group"}
	proxy.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	opts.ProxyClientCertFile, opts.ProxyClientKeyFile = s.FrontProxyCertFile, s.FrontProxyKeyFile

	opts.Authentication.ServiceAccounts.Issuers = []string{"https://kubernetes.default.svc." + s.Domain}
	opts.Authentication.ServiceAccounts.KeyFiles = s.ServiceAccountKeyFiles
	opts.ServiceAccountSigningKeyFile = s.ServiceAccountKeyFile
	opts.Authorization.Modes = []string{"Node", "RBAC"}
	if s.LimitSecretReferences {
		// This decorator comes first, because other decorators hide the plugin.
		admission := opts.Admission.GenericAdmission
		admission.Decorators = slices.Insert(admission.Decorators, 0, limitReferences())
	}
}

func (s *APIServer) fillAudit(opts *options.ServerRunOptions) {
	if s.Audit == nil {
		return
	}
	opts.Audit.PolicyFile = s.Audit.PolicyFile
	log := &opts.Audit.LogOptions
	log.Path, log.MaxAge = s.Audit.File, s.Audit.MaxAgeDays
	log.MaxBackups, log.MaxSize = s.Audit.MaxFiles, s.Audit.MaxSize
}
