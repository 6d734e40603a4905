package kube

import (
	"context"
	"fmt"
	"time"

	"k8s.io/component-base/configz"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/slipway-platform/slipway/internal/arguments"
)

// Controllers is the component that runs upstream's controller manager, without the controllers
// that AttachDetach, Expander and PolicyStatus run instead. Package controller/network replaces the
// controller that allocates the nodes' subnets. The component does not listen on any port.
type Controllers struct {
	// Kubeconfig is the path of the controller manager's kubeconfig. Each controller uses its own
	// service account, as RBAC expects.
	Kubeconfig string
	// ServiceAccountKeyFile is the path of the key that signs service account tokens. The content of
	// RootCAFile is published in every namespace.
	ServiceAccountKeyFile, RootCAFile string
	// SigningCertFile and SigningKeyFile are the paths of the certificate and key of the CA that signs
	// certificate signing requests.
	SigningCertFile, SigningKeyFile string
	// VolumePluginDir is the FlexVolume plugin directory for the controllers that run in the
	// controller manager.
	VolumePluginDir string
	// RecyclerTemplate is the path of the pod manifest for cleaning volumes with the Recycle reclaim
	// policy.
	RecyclerTemplate string
	// PodEvictionTimeout is OpenShift 3's kubernetesMasterConfig.podEvictionTimeout. Zero means
	// upstream's taint-based eviction (300 s).
	PodEvictionTimeout time.Duration
	// Arguments are the administrator's flags (kubernetesMasterConfig.controllerArguments).
	Arguments arguments.Map
}

// Name returns the component's name.
func (c *Controllers) Name() string { return "controllers" }

// Run runs the controllers until ctx is done.
func (c *Controllers) Run(ctx context.Context, ready func()) error {
	opts, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("set up controllers: %w", err)
	}
	all, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	// Call Flags before fill: registering a flag sets its option to upstream's default.
	flags := opts.Flags(all, disabled, aliases)
	c.fill(opts)
	if err := apply(c.Arguments, "kubernetesMasterConfig.controllerArguments", flags); err != nil {
		return err
	}
	config, err := opts.Config(ctx, all, disabled, aliases)
	if err != nil {
		return fmt.Errorf("set up controllers: %w", err)
	}
	defer configz.Delete(app.ConfigzName)
	ready()
	err = app.Run(ctx, config.Complete())
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("they stopped unexpectedly")
	}
	return fmt.Errorf("run controllers: %w", err)
}

func (c *Controllers) fill(opts *options.KubeControllerManagerOptions) {
	opts.SecureServing.BindPort = 0
	opts.Generic.ClientConnection.Kubeconfig = c.Kubeconfig
	// This rate is high, because the API server limits the requests for each user's projects
	// (controllerShares).
	opts.Generic.ClientConnection.QPS, opts.Generic.ClientConnection.Burst = controllersRate, controllersBurst
	opts.Generic.LeaderElection.LeaderElect = false
	opts.Generic.Debugging.EnableProfiling = false
	opts.Generic.Controllers = []string{
		"*", "-" + names.PersistentVolumeAttachDetachController, "-" + names.PersistentVolumeExpanderController,
		"-" + names.ValidatingAdmissionPolicyStatusController,
		"-" + names.NodeIpamController, // package controller/network allocates the nodes' subnets
	}
	opts.KubeCloudShared.UseServiceAccountCredentials = true
	opts.KubeCloudShared.AllocateNodeCIDRs = false
	opts.KubeCloudShared.ClusterName = "slipway"
	opts.SAController.ServiceAccountKeyFile = c.ServiceAccountKeyFile
	opts.SAController.RootCAFile = c.RootCAFile
	opts.CSRSigningController.ClusterSigningCertFile = c.SigningCertFile
	opts.CSRSigningController.ClusterSigningKeyFile = c.SigningKeyFile
	volumes := &opts.PersistentVolumeBinderController.VolumeConfiguration
	volumes.FlexVolumePluginDir = c.VolumePluginDir
	volumes.PersistentVolumeRecyclerConfiguration.PodTemplateFilePathHostPath = c.RecyclerTemplate
	volumes.PersistentVolumeRecyclerConfiguration.PodTemplateFilePathNFS = c.RecyclerTemplate
}
