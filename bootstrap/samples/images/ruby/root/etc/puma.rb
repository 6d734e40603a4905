# As many workers as the container has memory and processors for, unless variables set the number.
def limit(file)
  value = File.read("/sys/fs/cgroup/#{file}").split
  value.first == "max" ? nil : value.map(&:to_i)
rescue SystemCallError
  nil
end

memory = limit("memory.max")&.first || 2 << 30
quota, period = limit("cpu.max")
processors = quota ? (quota / period.to_f).ceil : 2
workers = [[memory / (256 << 20), processors].min, 1].max

workers Integer(ENV.fetch("PUMA_WORKERS", workers))
threads Integer(ENV.fetch("PUMA_MIN_THREADS", 0)), Integer(ENV.fetch("PUMA_MAX_THREADS", 16))
environment ENV.fetch("RACK_ENV")
bind "tcp://0.0.0.0:8080"
preload_app!
