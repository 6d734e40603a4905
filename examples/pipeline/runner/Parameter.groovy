package pipeline

/** A parameter of a pipeline. Its value is the variable of the build with its name, or its default. */
class Parameter {
    final String name
    final Object defaultValue

    Parameter(Map options, Object defaultValue) {
        name = options.name
        this.defaultValue = defaultValue
    }

    void apply(Run run) {
        String given = run.env[name]
        def value = given == null ? defaultValue : defaultValue instanceof Boolean ? given.toBoolean() : given
        run.params[name] = value
        run.env[name] = value.toString()
    }
}
