-- Settings for Neovim. From 0.11 on this file may lie as lsp/trainvet.lua in a folder of 'runtimepath', and
-- `vim.lsp.enable('trainvet')` starts the server. For older ones `require` or `dofile` it: it starts the server by itself.
local config = {
  name = 'trainvet',
  cmd = { 'trainvet', 'lsp' },
  filetypes = { 'python', 'json', 'jsonc', 'yaml', 'toml', 'sh', 'bash' },
  root_markers = { 'trainvet.toml', '.trainvet.toml', 'pyproject.toml', '.git' },
}

if vim.lsp.config then -- 0.11 and later
  return config
end

-- The folder above a file that has one of the markers, or the file's own.
local function root(file)
  local own = vim.fn.fnamemodify(file, ':p:h')
  local folder = own
  while true do
    for _, marker in ipairs(config.root_markers) do
      if vim.loop.fs_stat(folder .. '/' .. marker) then
        return folder
      end
    end
    local above = vim.fn.fnamemodify(folder, ':h')
    if above == folder then
      return own
    end
    folder = above
  end
end

local clients = {} -- by root folder

local function attach(event)
  local file = vim.api.nvim_buf_get_name(event.buf)
  if file == '' then
    return
  end
  local folder = root(file)
  local id = clients[folder]
  if not id or not vim.lsp.get_client_by_id(id) then
    id = vim.lsp.start_client({
      name = config.name,
      cmd = config.cmd,
      root_dir = folder,
      workspace_folders = { { uri = vim.uri_from_fname(folder), name = folder } },
    })
    clients[folder] = id
  end
  if id then
    vim.lsp.buf_attach_client(event.buf, id)
  end
end

vim.api.nvim_create_autocmd('FileType', { pattern = config.filetypes, callback = attach })
return config
