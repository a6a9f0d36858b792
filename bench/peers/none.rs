// cargo requires a target; the manifest beside this file only names sources, and this is never compiled.
