package local_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/storage/local"
)

// reference is the number of specs, out of 103, that csi-driver-host-path runs. This driver must
// pass more specs than that.
const reference = 85

// TestDriverConforms runs csi-sanity, the specification authors' conformance suite. Specs about
// controller attach do not apply: a local volume cannot be attached to another node.
func TestDriverConforms(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "csi.sock")
	componenttest.Run(t, (&local.Driver{Node: "node1", Dir: filepath.Join(dir, "data"), Socket: socket}).Run)

	config := sanity.NewTestConfig()
	config.Address = "unix://" + socket
	config.TargetPath, config.StagingPath = filepath.Join(dir, "target"), filepath.Join(dir, "staging")
	config.TestVolumeSize = 64 << 20
	config.TestVolumeMutableParameters = map[string]string{"allocation": "thick"}
	config.DialOptions = append(config.DialOptions, grpc.WithUnaryInterceptor(measureCall))
	suite := sanity.GinkgoTest(&config)

	passed := 0
	ginkgo.ReportAfterSuite("count", func(report ginkgo.Report) {
		for _, spec := range report.SpecReports {
			if spec.LeafNodeType == types.NodeTypeIt && spec.State == types.SpecStatePassed {
				passed++
			}
			if spec.State == types.SpecStateSkipped {
				t.Logf("skipped: %s: %s", spec.FullText(), spec.Failure.Message)
			}
		}
	})
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "csi-sanity")
	suite.Finalize()
	t.Logf("%d specs ran and passed", passed)
	if passed <= reference {
		t.Errorf("%d specs ran and passed, want more than the %d of the reference driver", passed, reference)
	}
}

// measureCall computes the size of each response so that protobuf caches the size in the message.
// The suite compares sent and received topologies, including their hidden fields, and only a
// message that was sent contains its cached size.
func measureCall(ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := invoke(ctx, method, request, response, conn, options...)
	if message, ok := response.(proto.Message); ok {
		proto.Size(message)
	}
	return err
}
