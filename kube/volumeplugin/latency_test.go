package volumeplugin

import "testing"

func TestLatenciesAreReadFromMetrics(t *testing.T) {
	const text = `# HELP other x
# TYPE other counter
other 1
# HELP slipway_flexvolume_operation_seconds y
# TYPE slipway_flexvolume_operation_seconds histogram
slipway_flexvolume_operation_seconds_bucket{driver="a/b",operation="mount",status="success",le="+Inf"} 3
slipway_flexvolume_operation_seconds_sum{driver="a/b",operation="mount",status="success"} 0.3
slipway_flexvolume_operation_seconds_count{driver="a/b",operation="mount",status="success"} 3
slipway_flexvolume_operation_seconds_bucket{driver="a/b",operation="mount",status="error",le="+Inf"} 1
slipway_flexvolume_operation_seconds_sum{driver="a/b",operation="mount",status="error"} 0.5
slipway_flexvolume_operation_seconds_count{driver="a/b",operation="mount",status="error"} 1
slipway_flexvolume_operation_seconds_bucket{driver="a/b",operation="init",status="success",le="+Inf"} 1
slipway_flexvolume_operation_seconds_sum{driver="a/b",operation="init",status="success"} 0.01
slipway_flexvolume_operation_seconds_count{driver="a/b",operation="init",status="success"} 1
`
	latencies := Latencies{}
	latencies.Add([]byte(text))
	latencies.Add([]byte("nonsense {"))
	mount := latencies["a/b"]["mount"]
	if mount.Calls != 4 || mount.Errors != 1 || mount.MeanSeconds != 0.2 || latencies["a/b"]["init"].Calls != 1 {
		t.Errorf("got %+v", latencies)
	}
}
